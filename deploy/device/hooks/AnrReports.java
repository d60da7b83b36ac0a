package com.example.app;

import android.app.ActivityManager;
import android.app.ApplicationExitInfo;
import android.content.Context;
import android.content.SharedPreferences;
import android.os.Build;
import androidx.annotation.RequiresApi;
import androidx.annotation.WorkerThread;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Collects the ANRs of earlier processes (Android 11 and later): call it at each start of the main process. */
final class AnrReports {
	private static final String LAST = "last_anr";

	private AnrReports() {}

	static void collect(Context context) {
		if (Build.VERSION.SDK_INT >= 30) Tracing.IO.execute(() -> scan(context));
	}

	@RequiresApi(30)
	@WorkerThread
	private static void scan(Context context) {
		ActivityManager manager = context.getSystemService(ActivityManager.class);
		// returned with the exit of this process, when another version may be running
		manager.setProcessStateSummary((BuildConfig.VERSION_NAME + "\n" + BuildConfig.BUILD_ID).getBytes(StandardCharsets.UTF_8));
		SharedPreferences kept = Tracing.preferences(context);
		long last = kept.getLong(LAST, 0);
		long newest = last;
		for (ApplicationExitInfo exit : manager.getHistoricalProcessExitReasons(null, 0, 16)) {
			if (exit.getReason() != ApplicationExitInfo.REASON_ANR || exit.getTimestamp() <= last) continue;
			newest = Math.max(newest, exit.getTimestamp());
			send(context, exit);
		}
		long seen = newest;
		Tracing.IO.execute(() -> kept.edit().putLong(LAST, seen).apply()); // after they are queued: the system returns them at each start
	}

	@RequiresApi(30)
	private static void send(Context context, ApplicationExitInfo exit) {
		try (InputStream in = exit.getTraceInputStream()) {
			if (in == null) return; // the system stored no report
			File report = File.createTempFile("anr", ".txt", context.getCacheDir());
			try (OutputStream out = new FileOutputStream(report)) {
				byte[] piece = new byte[8192];
				for (int n; (n = in.read(piece)) > 0;) out.write(piece, 0, n);
			}
			Tracing.keep(context, report, about(context, exit), "anr-" + exit.getPid() + "-" + exit.getTimestamp());
		} catch (IOException lost) {
			// this report is lost
		}
	}

	@RequiresApi(30)
	private static Map<String, String> about(Context context, ApplicationExitInfo exit) {
		Map<String, String> about = Tracing.about(context, "anr");
		byte[] summary = exit.getProcessStateSummary();
		String[] of = summary == null ? new String[0] : new String(summary, StandardCharsets.UTF_8).split("\n");
		about.put("version_name", of.length == 2 ? of[0] : null);
		about.put("build_id", of.length == 2 ? of[1] : null); // null if unknown: another build's mapping would give wrong names
		about.remove("version_code");
		about.put("pid", String.valueOf(exit.getPid()));
		about.put("process", exit.getProcessName());
		about.put("started_at", String.valueOf(exit.getTimestamp()));
		return about;
	}
}
