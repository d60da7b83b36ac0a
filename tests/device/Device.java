import dev.tracewell.CaptureConfig;
import dev.tracewell.TraceUploader;
import java.io.File;
import java.net.URI;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** A device for device.test.mjs: add FOLDER MAX FILE K=V... | send SERVER KEY FOLDER | once SERVER KEY FOLDER |
 * capture SERVER KEY FILE K=V... */
final class Device {
	static Map<String, String> pairs(String[] args, int from) {
		Map<String, String> all = new LinkedHashMap<>();
		for (String pair : Arrays.asList(args).subList(from, args.length)) all.put(pair.split("=", 2)[0], pair.split("=", 2)[1]);
		return all;
	}

	static TraceUploader uploader(String[] args) {
		return new TraceUploader(URI.create(args[1]), args[2], new File(args[3])).pieceBytes(4096).waits(50, 400).timeouts(2000, 5000);
	}

	public static void main(String[] args) throws Exception {
		switch (args[0]) {
			case "add": {
				TraceUploader u = new TraceUploader(URI.create("http://127.0.0.1:1"), "none", new File(args[1])).maxQueueBytes(Long.parseLong(args[2]));
				System.out.println(u.add(new File(args[3]), pairs(args, 4)) + " dropped " + u.dropped());
				break;
			}
			case "send": {
				TraceUploader u = uploader(args);
				for (long wait; (wait = u.sendNext()) != TraceUploader.NOTHING;)
					if (wait != TraceUploader.SENT) Thread.sleep(wait);
				System.out.println("sent " + u.sent() + " refused " + u.refused() + " " + u.lastRefusal());
				break;
			}
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
