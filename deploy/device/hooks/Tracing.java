package com.example.app;

import android.app.ActivityManager;
import android.app.Application;
import android.content.Context;
import android.content.SharedPreferences;
import android.os.Build;
import android.os.Process;
import android.util.Log;
import androidx.annotation.AnyThread;
import androidx.annotation.WorkerThread;
import androidx.work.Constraints;
import androidx.work.ExistingWorkPolicy;
import androidx.work.NetworkType;
import androidx.work.OneTimeWorkRequest;
import androidx.work.WorkManager;
import dev.tracewell.CaptureConfig;
import dev.tracewell.TraceUploader;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** The app's only uploader, its metadata and the schedule of uploads. The other hooks call keep. */
public final class Tracing {
	/** For file access: compressing 5 MB takes most of a second. */
	static final ExecutorService IO = Executors.newSingleThreadExecutor(r -> new Thread(r, "tracing"));
	private static TraceUploader uploader;
	private static CaptureConfig capture;

	private Tracing() {}

	@WorkerThread
	static synchronized TraceUploader uploader(Context context) {
		if (uploader == null)
			uploader = new TraceUploader(URI.create(BuildConfig.TRACEWELL_URL), BuildConfig.TRACEWELL_INGEST_KEY,
					new File(context.getNoBackupFilesDir(), "traces")).listener(new TraceUploader.Listener() {
				@Override
				public void sent(Map<String, String> metadata, String traceId) {
					Log.i("tracing", metadata.get("scenario") + ": " + uploader.page(traceId));
				}

				@Override
				public void refused(Map<String, String> metadata, String why) {
					Log.w("tracing", metadata.get("scenario") + " was refused: " + why);
				}
			});
		return uploader;
	}

	@WorkerThread
	static synchronized CaptureConfig capture(Context context) {
		if (capture == null)
			capture = new CaptureConfig(URI.create(BuildConfig.TRACEWELL_URL), BuildConfig.TRACEWELL_INGEST_KEY,
					new File(context.getNoBackupFilesDir(), "capture"));
		return capture;
	}

	/** Metadata of this process and build. Recordings of earlier ones need their own (see AnrReports). */
	@AnyThread
	static Map<String, String> about(Context context, String scenario) {
		Map<String, String> about = new HashMap<>();
		about.put("app", context.getPackageName());
		about.put("version_name", BuildConfig.VERSION_NAME);
		about.put("version_code", String.valueOf(BuildConfig.VERSION_CODE));
		about.put("build_id", BuildConfig.BUILD_ID);
		about.put("scenario", scenario);
		about.put("device", Build.MODEL);
		about.put("os", Build.VERSION.RELEASE);
		about.put("abi", Build.SUPPORTED_ABIS[0]);
		about.put("pid", String.valueOf(Process.myPid()));
		about.put("process", Build.VERSION.SDK_INT >= 28 ? Application.getProcessName() : context.getPackageName());
		about.put("device_id", installation(context));
		about.put("labels", "{\"ram_mb\":" + memoryMb(context) + "}");
		return about;
	}

	/** The server assigns devices to the classes low, mid and high by it, and compares within a class. */
	private static long memoryMb(Context context) {
		ActivityManager manager = context.getSystemService(ActivityManager.class);
		if (manager == null) return 0;
		ActivityManager.MemoryInfo memory = new ActivityManager.MemoryInfo();
		manager.getMemoryInfo(memory);
		return memory.totalMem >> 20;
	}

	/** A random number per installation, deleted with the app; the server stores its hash. */
	private static synchronized String installation(Context context) {
		SharedPreferences kept = preferences(context);
		String id = kept.getString("installation", null);
		if (id == null) kept.edit().putString("installation", id = UUID.randomUUID().toString()).apply();
		return id;
	}

	static SharedPreferences preferences(Context context) {
		return context.getSharedPreferences("tracing", Context.MODE_PRIVATE);
	}

	/** The consent that your dialog or settings stored. Without it nothing is stored or sent. */
	static boolean isAllowed(Context context) {
		return preferences(context).getBoolean("allowed", false);
	}

	/** Queues the file and deletes it, on a separate thread. Key: null, or an id of the recording if it may be found again. */
	@AnyThread
	static void keep(Context context, File trace, Map<String, String> about, String key) {
		IO.execute(() -> {
			try {
				if (isAllowed(context)) {
					uploader(context).add(trace, about, key == null ? UUID.randomUUID().toString() : key);
					sendIn(context, 0, ExistingWorkPolicy.KEEP);
				}
			} catch (IOException full) {
				Log.w("tracing", "not queued: " + full);
			} finally {
				trace.delete();
			}
		});
	}

	/** One worker sends all queued traces, on an unmetered network. */
	@AnyThread
	static void sendIn(Context context, long ms, ExistingWorkPolicy policy) {
		Constraints when = new Constraints.Builder().setRequiredNetworkType(NetworkType.UNMETERED).setRequiresBatteryNotLow(true).build();
		WorkManager.getInstance(context).enqueueUniqueWork("tracewell", policy,
				new OneTimeWorkRequest.Builder(TraceWorker.class).setInitialDelay(ms, TimeUnit.MILLISECONDS).setConstraints(when).build());
	}
}
