import java.io.File;
import java.net.URI;
import org.gradle.api.file.RegularFile;
import org.gradle.api.file.RegularFileProperty;
import org.gradle.api.provider.Property;

/** A build for device_mappings.test.mjs: task SERVER KEY BUILD METHODS RETRACE (- for none) | send SERVER KEY BUILD KIND FILE */
final class Mappings {
	static <T> Property<T> property(T value) {
		Property<T> p = new Property<>();
		p.set(value);
		return p;
	}

	static RegularFileProperty file(String name) {
		RegularFileProperty p = new RegularFileProperty();
		if (!name.equals("-")) p.set(new RegularFile(new File(name)));
		return p;
	}

	static UploadMappings task(String[] args) {
		return new UploadMappings() {
			@Override
			public Property<String> getServer() {
				return property(args[1]);
			}

			@Override
			public Property<String> getKey() {
				return property(args[2].equals("-") ? null : args[2]);
			}

			@Override
			public Property<String> getBuildId() {
				return property(args[3]);
			}

			@Override
			public RegularFileProperty getMethods() {
				return file(args[4]);
			}

			@Override
			public RegularFileProperty getRetrace() {
				return file(args[5]);
			}
		};
	}

	public static void main(String[] args) throws Exception {
		if (args[0].equals("task")) task(args).upload();
		else new MappingUpload(URI.create(args[1]), args[2], 100).send(args[3], args[4], new File(args[5]));
	}
}
