package com.example.app;

import android.content.Context;
import android.os.Build;
import android.os.Bundle;
import android.os.CancellationSignal;
import android.os.ProfilingManager;
import android.os.ProfilingResult;
import android.os.ProfilingTrigger;
import androidx.annotation.RequiresApi;
import java.io.File;
import java.util.Arrays;
import java.util.function.Consumer;

/** Android's recorder: on request from Android 15, by itself at ANRs and cold starts from Android 16. */
final class SystemProfiles {
	private SystemProfiles() {}

	/** Call it once, at the start. Also receives recordings that Android finished after the last process ended. */
	static void listen(Context context) {
		if (Build.VERSION.SDK_INT < 35) return;
		ProfilingManager manager = context.getSystemService(ProfilingManager.class);
		if (manager == null) return;
		manager.registerForAllProfilingResults(Tracing.IO, taker(context));
		if (Build.VERSION.SDK_INT >= 36) addTriggers(manager);
	}

	/** Samples the stacks of all threads. Android limits requests per hour, day and week: expect few recordings. */
	@RequiresApi(35)
	static void request(Context context, String scenario, int seconds, CancellationSignal stop) {
		Bundle how = new Bundle();
		how.putInt("KEY_DURATION_MS", seconds * 1000); // named as in androidx.core.os.Profiling
		how.putInt("KEY_FREQUENCY_HZ", 100);
		context.getSystemService(ProfilingManager.class).requestProfiling(
				ProfilingManager.PROFILING_TYPE_STACK_SAMPLING, how, scenario, stop, null, null); // received in listen
	}

	@RequiresApi(36)
	private static void addTriggers(ProfilingManager manager) {
		manager.addProfilingTriggers(Arrays.asList(
				new ProfilingTrigger.Builder(ProfilingTrigger.TRIGGER_TYPE_ANR).setRateLimitingPeriodHours(24).build(),
				new ProfilingTrigger.Builder(ProfilingTrigger.TRIGGER_TYPE_APP_FULLY_DRAWN).setRateLimitingPeriodHours(24).build()));
	}

	@RequiresApi(35)
	private static Consumer<ProfilingResult> taker(Context context) {
		return result -> {
			if (result.getErrorCode() != ProfilingResult.ERROR_NONE || result.getResultFilePath() == null) return;
			String scenario = result.getTag() != null ? result.getTag() : "system_triggered";
			File file = new File(result.getResultFilePath());
			Tracing.keep(context, file, Tracing.about(context, scenario), file.getName());
		};
	}
}
