// SPDX-License-Identifier: GPL-2.0

// Goroutines with timers, channels, a lock and garbage: goroutines ROUNDS
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

const many = 1000

func work(id, rounds int, out chan<- uint64) {
	x := uint64(id)
	ticker := time.NewTicker(time.Millisecond * time.Duration(20+id%17))
	defer ticker.Stop()
	for round := 0; round < rounds; round++ {
		<-ticker.C
		garbage := make([]uint64, 256)
		for i := 0; i < 2000; i++ {
			x = x*6364136223846793005 + 1442695040888963407
			garbage[i%256] ^= x
		}
		out <- x ^ garbage[id%256]
	}
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	out := make(chan uint64)
	var all sync.WaitGroup
	for id := 0; id < many; id++ {
		all.Add(1)
		go func(id int) {
			defer all.Done()
			work(id, rounds, out)
		}(id)
	}
	go func() {
		all.Wait()
		close(out)
	}()
	log, err := os.Create("steps")
	if err != nil {
		panic(err)
	}
	var sum uint64
	count := 0
	for x := range out {
		sum += x
		count++
		if count%many == 0 {
			fmt.Fprintln(log, count)
		}
	}
	fmt.Println(count, sum)
}
