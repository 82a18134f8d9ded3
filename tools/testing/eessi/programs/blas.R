# SPDX-License-Identifier: GPL-2.0
# R over OpenBLAS, and Bioconductor's limma if there: blas.R STEPS
steps <- as.integer(commandArgs(TRUE)[1])
set.seed(17)
n <- 96
a <- matrix(rnorm(n * n), n) / sqrt(n)
x <- matrix(rnorm(n * n), n)
limma <- requireNamespace("limma", quietly = TRUE)
genes <- matrix(rnorm(200 * 8), 200)
design <- cbind(1, rep(0:1, each = 4))
for (step in seq_len(steps)) {
	if (file.exists("enough"))
		break
	x <- a %*% x
	x <- x / sqrt(sum(x^2))
	y <- solve(a + 2 * diag(n), x)
	line <- c(step, x[1, 1], sum(diag(x)), sum(y))
	if (step %% 16 == 0) {
		line <- c(line, svd(y)$d[1])
		if (limma) {
			fit <- limma::eBayes(limma::lmFit(genes + step * x[1, 1], design))
			line <- c(line, fit$F[1:3])
		}
	}
	cat(sprintf("%.17g", line), "\n")
	flush(stdout())
}
