package com.example.app;

import android.content.Context;
import androidx.work.ExistingWorkPolicy;
import androidx.work.Worker;
import androidx.work.WorkerParameters;
import dev.tracewell.TraceUploader;

/** Sends queued traces. Retries by the uploader's waits, which include those that the server requests, not by WorkManager's. */
public final class TraceWorker extends Worker {
	public TraceWorker(Context context, WorkerParameters parameters) {
		super(context, parameters);
	}

	@Override
	public Result doWork() {
		TraceUploader uploader = Tracing.uploader(getApplicationContext());
		long wait = TraceUploader.SENT;
		while (wait == TraceUploader.SENT && !isStopped() && Tracing.isAllowed(getApplicationContext())) wait = uploader.sendNext();
		if (wait != TraceUploader.SENT && wait != TraceUploader.NOTHING)
			Tracing.sendIn(getApplicationContext(), wait, ExistingWorkPolicy.APPEND_OR_REPLACE); // REPLACE would stop this one
		return Result.success();
	}
}
