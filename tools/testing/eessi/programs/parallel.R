# SPDX-License-Identifier: GPL-2.0
# parallel's forked workers; each writes down its PID and its steps:
# parallel.R STEPS STEPS
library(parallel)
steps <- rep_len(as.integer(commandArgs(TRUE)), 2)
work <- function(k) {
	writeLines(as.character(Sys.getpid()), sprintf("worker.%d.new", k))
	file.rename(sprintf("worker.%d.new", k), sprintf("worker.%d", k))
	log <- file(sprintf("steps.%d", k), "w")
	x <- k
	for (step in seq_len(steps[k])) {
		if (file.exists("enough"))
			break
		for (i in 1:20000)
			x <- (x * 16807) %% 2147483647
		writeLines(sprintf("%.0f", x), log)
		flush(log)
	}
	close(log)
	x
}
results <- mclapply(1:2, work, mc.cores = 2, mc.preschedule = FALSE)
cat(sprintf("%.0f\n", unlist(results)))
