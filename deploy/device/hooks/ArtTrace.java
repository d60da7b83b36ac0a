package com.example.app;

import android.content.Context;
import android.os.Debug;
import java.io.File;
import java.util.Map;

/** ART's own recorder, no library needed. Recording every call slows short methods many times; samples less, but they halt all threads. */
final class ArtTrace {
	/** Bytes; when it is full, recording goes on for nothing. */
	private static final int BUFFER = 8 << 20;
	private static final int INTERVAL_US = 1000;
	private static File file;

	private ArtTrace() {}

	/** Any thread. False when a recording is on. */
	static synchronized boolean start(Context context, boolean everyCall) {
		if (file != null) return false;
		file = new File(context.getCacheDir(), "art-" + System.nanoTime() + ".trace");
		if (everyCall) Debug.startMethodTracing(file.getPath(), BUFFER);
		else Debug.startMethodTracingSampling(file.getPath(), BUFFER, INTERVAL_US);
		return true;
	}

	/** It stops all threads while it writes the buffer: after the frame, never inside an animation. */
	static synchronized void stop(Context context, Map<String, String> about) {
		if (file == null) return;
		Debug.stopMethodTracing();
		Tracing.keep(context, file, about, null);
		file = null;
	}
}
