# SPDX-License-Identifier: GPL-2.0
"""TensorFlow's pools, of two threads each, train a small model: tf-train.py STEPS"""
import os
import sys
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(2)
tf.config.threading.set_inter_op_parallelism_threads(2)
tf.keras.utils.set_random_seed(17)
tf.config.experimental.enable_op_determinism()
first = tf.Variable(tf.random.normal([256, 256]) / 16)
second = tf.Variable(tf.random.normal([256, 16]) / 16)
inputs = tf.random.normal([256, 256])
targets = tf.random.normal([256, 16])


@tf.function
def train():
    """One step of gradient descent."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.tanh(inputs @ first) @ second - targets) ** 2)
    for weight, slope in zip((first, second), tape.gradient(loss, [first, second])):
        weight.assign_sub(0.05 * slope)
    return loss


for step in range(int(sys.argv[1])):
    if os.path.exists("enough"):
        break
    print(step, repr(float(train())), flush=True)
