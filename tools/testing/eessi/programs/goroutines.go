// SPDX-License-Identifier: GPL-2.0

// Goroutines with timers, channels and garbage: goroutines STEPS
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

const many = 1000

func work(id int, turn <-chan uint64, out chan<- uint64) {
	x := uint64(id)
	ticker := time.NewTicker(time.Millisecond * time.Duration(20+id%17))
	defer ticker.Stop()
	for y := range turn {
		<-ticker.C
		x ^= y
		garbage := make([]uint64, 256)
		for i := 0; i < 2000; i++ {
			x = x*6364136223846793005 + 1442695040888963407
			garbage[i%256] ^= x
		}
		out <- x ^ garbage[id%256]
	}
}

func main() {
	steps, _ := strconv.Atoi(os.Args[1])
	out := make(chan uint64)
	var turns [many]chan uint64
	for id := range turns {
		turns[id] = make(chan uint64, 1)
		go work(id, turns[id], out)
	}
	log, err := os.Create("steps")
	if err != nil {
		panic(err)
	}
	var sum uint64
	for step := 0; step < steps; step++ {
		if _, err := os.Stat("enough"); err == nil {
			break
		}
		for _, turn := range turns {
			turn <- sum
		}
		for range turns {
			sum += <-out
		}
		fmt.Fprintln(log, step, sum)
	}
	fmt.Println(sum)
}
