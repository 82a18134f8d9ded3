#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# TensorFlow with two threads in each of its pools trains a model to the same loss.
# timeout: 1200

. "$(dirname "$0")/lib.sh"

need TensorFlow python3
on 1 "python3 -c 'import tensorflow'" ||
	skip_test "no TensorFlow on node 1: no EESSI, and Debian has none"
input tf-train.py
moves TensorFlow 2 "env TF_CPP_MIN_LOG_LEVEL=2 python3 tf-train.py SIZE"
finish_eessi
