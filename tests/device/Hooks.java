package com.example.app;

import android.app.ActivityManager;
import android.app.Application;
import android.app.ApplicationExitInfo;
import android.content.Context;
import android.os.Debug;
import android.os.Looper;
import android.os.ProfilingManager;
import android.os.ProfilingResult;
import androidx.work.WorkManager;
import androidx.work.WorkerParameters;
import com.bytedance.rheatrace.atrace.RheaATrace;
import com.tencent.matrix.report.Issue;
import java.io.File;
import java.nio.file.Files;
import org.json.JSONObject;

/** The hooks of an app, on stubs of Android, for device_hooks.test.mjs: record ROOT TRACE ANR | send ROOT | capture ROOT SCENARIO */
final class Hooks {
	static Context context;

	static int queued() {
		String[] waits = new File(context.getNoBackupFilesDir(), "traces").list((dir, name) -> name.endsWith(".gz"));
		return waits == null ? 0 : waits.length;
	}

	static void say(String what) throws Exception {
		for (int i = 0; i < 3; i++) Tracing.IO.submit(() -> {}).get(); // what was put there puts more there
		System.out.println(what + " " + queued());
	}

	static ApplicationExitInfo exit(int reason, long timestamp, String text, String summary) throws Exception {
		ApplicationExitInfo exit = new ApplicationExitInfo();
		exit.reason = reason;
		exit.timestamp = timestamp;
		exit.text = text;
		exit.summary = summary == null ? null : summary.getBytes("UTF-8");
		return exit;
	}

	static void anrs(String text) throws Exception {
		ActivityManager manager = new ActivityManager();
		Context.SERVICES.put(ActivityManager.class, manager);
		manager.exits.add(exit(ApplicationExitInfo.REASON_ANR, 1_700_000_003_000L, null, null));
		manager.exits.add(exit(ApplicationExitInfo.REASON_ANR, 1_700_000_002_000L, text, "8.2.0\nold-build"));
		manager.exits.add(exit(4, 1_700_000_001_000L, text, null));
		AnrReports.collect(context);
		say("anr");
		File queue = new File(context.getNoBackupFilesDir(), "traces");
		File away = new File(context.getNoBackupFilesDir(), "sent");
		queue.renameTo(away); // as if it were sent
		queue.mkdir();
		AnrReports.collect(context);
		say("again");
		queue.delete();
		away.renameTo(queue);
		System.out.println("summary " + new String(manager.summary, "UTF-8").replace('\n', ' '));
	}

	static void btrace(byte[] trace) throws Exception {
		RheaATrace.trace = trace;
		Btrace2.start(context);
		Btrace2.stop(context, "btrace2");
		say("btrace2");
		for (String pid : new String[] {"99", "1234"}) {
			File folder = new File(context.getFilesDir(), "rhea/tracing/" + pid);
			folder.mkdirs();
			Files.write(new File(folder, "sampling").toPath(), trace);
			if (pid.equals("99")) Files.write(new File(folder, "build.properties").toPath(), "build_id=former\n".getBytes("UTF-8"));
		}
		Btrace3.collect(context, "btrace3");
		say("btrace3");
		File shared = new File(System.getProperty("storage"), "rhea-trace/com.example.app");
		shared.mkdirs();
		Files.write(new File(shared, "rhea-atrace.gz").toPath(), trace);
		Rhea1.collect(context, "rhea1");
		Rhea1.collect(context, "rhea1");
		say("rhea1");
	}

	static void others(byte[] trace) throws Exception {
		Debug.trace = trace;
		System.out.println(ArtTrace.start(context, false) + " " + ArtTrace.start(context, true));
		ArtTrace.stop(context, Tracing.about(context, "art"));
		ArtTrace.stop(context, Tracing.about(context, "art"));
		say("art");
		Issue issue = new Issue();
		issue.tag = "Trace_EvilMethod";
		issue.content = new JSONObject("{\"tag\":\"Trace_EvilMethod\",\"detail\":\"NORMAL\",\"cost\":800,\"stack\":\"0,1,1,800\\n1,2,1,700\\n\"}");
		new MatrixReports(context).onReportIssue(issue);
		say("matrix");
		ProfilingManager manager = new ProfilingManager();
		Context.SERVICES.put(ProfilingManager.class, manager);
		SystemProfiles.listen(context);
		ProfilingResult result = new ProfilingResult();
		result.path = new File(context.getFilesDir(), "profile.pb").getPath();
		Files.write(new File(result.path).toPath(), trace);
		manager.listener.accept(result);
		say("profiles " + manager.triggers);
	}

	static void block(long patienceMs) throws Exception {
		int before = queued();
		new MainThreadSampler(context).start();
		Looper.getMainLooper().printer.println(">>>>> Dispatching to Handler");
		Thread.sleep(1500);
		Looper.getMainLooper().printer.println("<<<<< Finished to Handler");
		for (long until = System.currentTimeMillis() + patienceMs; queued() == before && System.currentTimeMillis() < until;) Thread.sleep(20);
		say("sampler");
	}

	public static void main(String[] args) throws Exception {
		Looper.getMainLooper();
		context = new Application(new File(args[1]));
		Tracing.preferences(context).edit().putBoolean("allowed", !args[0].equals("refuse")).apply();
		if (args[0].equals("send")) {
			new TraceWorker(context, new WorkerParameters()).doWork();
			System.out.println("next in " + WorkManager.delayMs + " " + WorkManager.ENQUEUED);
		} else if (args[0].equals("capture")) {
			Capture.refresh(context);
			say("asked");
			Capture c = Capture.of(context, args[2]);
			System.out.println(c == null ? "none" : c.maxSeconds(60) + " " + c.maxSeconds(5) + " " + c.about(context, args[2]).get("capture"));
		} else {
			byte[] trace = Files.readAllBytes(new File(args[2]).toPath());
			anrs(new String(Files.readAllBytes(new File(args[3]).toPath()), "UTF-8"));
			btrace(trace);
			others(trace);
			block(args[0].equals("refuse") ? 500 : 20_000);
		}
		System.exit(0);
	}
}
