import dev.tracewell.CaptureConfig;
import dev.tracewell.TraceUploader;
import java.io.File;
import java.net.URI;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A device for device.test.mjs: add FOLDER MAX FILE K=V... | key FOLDER KEY FILE | bare FOLDER FILE | many FOLDER FILE N |
 * send SERVER KEY FOLDER | once SERVER KEY FOLDER | whole SERVER KEY FOLDER, in one piece, to print why it waits | during SERVER KEY FOLDER FILE | capture SERVER KEY FILE K=V... */
final class Device {
	static Map<String, String> pairs(String[] args, int from) {
		Map<String, String> all = new LinkedHashMap<>();
		for (String pair : Arrays.asList(args).subList(from, args.length)) all.put(pair.split("=", 2)[0], pair.split("=", 2)[1]);
		return all;
	}

	static TraceUploader uploader(String[] args) {
		return new TraceUploader(URI.create(args[1]), args[2], new File(args[3])).pieceBytes(4096).waits(50, 400).timeouts(2000, 5000);
	}

	static TraceUploader offline(String folder) {
		return new TraceUploader(URI.create("http://127.0.0.1:1"), "none", new File(folder));
	}

	static TraceUploader.Listener aloud() {
		return new TraceUploader.Listener() {
			@Override
			public void sent(Map<String, String> metadata, String traceId) {
				System.out.println("reported sent " + metadata.get("scenario") + " " + traceId);
			}

			@Override
			public void refused(Map<String, String> metadata, String why) {
				System.out.println("reported refused " + metadata.get("scenario") + " " + why.substring(0, 3));
			}

			@Override
			public void waits(Map<String, String> metadata, String why, long ms) {
				System.out.println("reported waits " + metadata.get("scenario") + " " + ms);
			}
		};
	}

	/** As an app that makes an uploader for each trace: how many were queued. */
	static int many(String folder, File file, int n) throws InterruptedException {
		AtomicInteger queued = new AtomicInteger();
		ExecutorService threads = Executors.newFixedThreadPool(n);
		for (int i = 0; i < n; i++)
			threads.execute(() -> {
				try {
					if (offline(folder).add(file, null)) queued.incrementAndGet();
				} catch (Exception e) {
					e.printStackTrace();
				}
			});
		threads.shutdown();
		threads.awaitTermination(60, TimeUnit.SECONDS);
		return queued.get();
	}

	/** Ms that adding takes while sending hangs. */
	static String during(TraceUploader u, File file) throws Exception {
		Thread sends = new Thread(u::sendNext);
		sends.setDaemon(true);
		sends.start();
		System.in.read(); // the server has been asked
		u.add(file, null);
		return sends.isAlive() ? "still sending" : "sent";
	}

	public static void main(String[] args) throws Exception {
		switch (args[0]) {
			case "add": {
				TraceUploader u = new TraceUploader(URI.create("http://127.0.0.1:1"), "none", new File(args[1])).maxQueueBytes(Long.parseLong(args[2]));
				System.out.println(u.add(new File(args[3]), pairs(args, 4)) + " dropped " + u.dropped());
				break;
			}
			case "key":
				System.out.println(offline(args[1]).add(new File(args[3]), null, args[2]));
				break;
			case "bare":
				System.out.println(offline(args[1]).add(new File(args[2]), java.util.Collections.singletonMap("scenario", null)));
				break;
			case "many":
				System.out.println(many(args[1], new File(args[2]), Integer.parseInt(args[3])));
				break;
			case "during":
				System.out.println(during(uploader(args).timeouts(2000, 600_000), new File(args[4])));
				break;
			case "send": {
				TraceUploader u = uploader(args).listener(aloud());
				for (long wait; (wait = u.sendNext()) != TraceUploader.NOTHING;)
					if (wait != TraceUploader.SENT) Thread.sleep(wait);
				System.out.println("sent " + u.sent() + " refused " + u.refused() + " " + u.lastRefusal());
				break;
			}
			case "whole":
				uploader(args).pieceBytes(64 << 20).listener(new TraceUploader.Listener() {
					@Override
					public void waits(Map<String, String> metadata, String why, long ms) {
						System.out.println(why);
					}
				}).sendNext();
				break;
			case "once":
				System.out.println(uploader(args).sendNext());
				break;
			case "capture":
				System.out.println(new CaptureConfig(URI.create(args[1]), args[2], new File(args[3])).get(pairs(args, 4)));
				break;
			default:
				System.exit(2);
		}
	}
}
