// SPDX-License-Identifier: GPL-2.0

import java.io.File;
import java.io.FileWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Threads that compute and make garbage, for the JVM to collect: Churn STEPS */
public class Churn {
	static long churn(long seed) {
		TreeMap<Long, long[]> map = new TreeMap<>();
		long x = seed;

		for (int i = 0; i < 3000; i++) {
			x = x * 6364136223846793005L + 1442695040888963407L;
			map.put(x >>> 50, new long[] { x, i });
			if (map.size() > 500)
				map.pollFirstEntry();
		}
		for (long[] pair : map.values())
			x = 31 * x + pair[0] + pair[1];
		return x;
	}

	public static void main(String[] words) throws Exception {
		int steps = Integer.parseInt(words[0]);
		ExecutorService pool = Executors.newFixedThreadPool(2);
		File enough = new File("enough");
		long sum = 0;

		try (FileWriter log = new FileWriter("steps")) {
			for (int step = 0; step < steps && !enough.exists(); step++) {
				List<Future<Long>> parts = new ArrayList<>();
				for (int k = 0; k < 4; k++) {
					long seed = sum + step * 4L + k;
					parts.add(pool.submit(() -> churn(seed)));
				}
				for (Future<Long> part : parts)
					sum = 31 * sum + part.get();
				log.write(step + " " + sum + "\n");
				log.flush();
			}
		}
		pool.shutdown();
		System.out.println(sum);
	}
}
