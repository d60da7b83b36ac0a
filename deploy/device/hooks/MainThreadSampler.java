package com.example.app;

import android.content.Context;
import android.os.Looper;
import android.os.Process;
import android.os.SystemClock;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Like BlockCanary: samples the main thread's stack during each message and sends those of slow messages as a trace. */
final class MainThreadSampler {
	private static final int INTERVAL_MS = 50;
	private static final int SLOW_MS = 500;
	private static final int MOST_SAMPLES = 600;
	private final Context context;
	private final Thread main = Looper.getMainLooper().getThread();
	private volatile long begun; // start of the running message; 0: none

	MainThreadSampler(Context context) {
		this.context = context;
	}

	void start() {
		Looper.getMainLooper().setMessageLogging(line -> begun = line.startsWith(">") ? SystemClock.elapsedRealtimeNanos() : 0);
		Thread sampler = new Thread(this::watch, "main-sampler");
		sampler.setDaemon(true);
		sampler.start();
	}

	private void watch() {
		while (true) {
			SystemClock.sleep(INTERVAL_MS);
			long message = begun;
			if (message != 0) sample(message);
		}
	}

	/** Samples one message until it ends. Each sample stops the thread. */
	private void sample(long message) {
		List<Long> times = new ArrayList<>();
		List<StackTraceElement[]> stacks = new ArrayList<>();
		while (begun == message && times.size() < MOST_SAMPLES) {
			times.add(SystemClock.elapsedRealtimeNanos());
			stacks.add(main.getStackTrace());
			SystemClock.sleep(INTERVAL_MS);
		}
		long took = SystemClock.elapsedRealtimeNanos() - message;
		if (took < SLOW_MS * 1_000_000L) return;
		try {
			File file = File.createTempFile("slow", ".json", context.getCacheDir());
			try (PrintWriter out = new PrintWriter(file, "UTF-8")) {
				write(out, times, stacks);
			}
			Tracing.keep(context, file, Tracing.about(context, "slow_message"), null);
		} catch (IOException full) {
			// this trace is lost
		}
	}

	/** Format java-stacks/1: each frame once, stacks leaf first. */
	private static void write(PrintWriter out, List<Long> times, List<StackTraceElement[]> stacks) {
		Map<String, Integer> frames = new LinkedHashMap<>();
		StringBuilder lists = new StringBuilder();
		StringBuilder samples = new StringBuilder();
		for (int i = 0; i < stacks.size(); i++) {
			StringBuilder list = new StringBuilder();
			for (StackTraceElement e : stacks.get(i)) {
				String frame = e.toString().replace("\\", "").replace("\"", "");
				frames.putIfAbsent(frame, frames.size());
				list.append(list.length() > 0 ? "," : "").append(frames.get(frame));
			}
			lists.append(i > 0 ? "," : "").append('[').append(list).append(']');
			samples.append(i > 0 ? "," : "").append('[').append(times.get(i) - times.get(0)).append(",1,").append(i).append(']');
		}
		out.print("{\"format\":\"java-stacks/1\",\"pid\":" + Process.myPid() + ",\"clock\":\"elapsed_realtime\",\"start_ns\":" + times.get(0)
				+ ",\"interval_ms\":" + INTERVAL_MS + ",\"frames\":[\"" + String.join("\",\"", frames.keySet()) + "\"],\"stacks\":[" + lists
				+ "],\"threads\":{\"1\":{\"name\":\"main\",\"sys_tid\":" + Process.myPid() + "}},\"samples\":[" + samples + "]}");
	}
}
