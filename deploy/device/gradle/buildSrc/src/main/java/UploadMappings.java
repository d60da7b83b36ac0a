import java.io.IOException;
import java.net.URI;
import org.gradle.api.DefaultTask;
import org.gradle.api.GradleException;
import org.gradle.api.file.RegularFileProperty;
import org.gradle.api.provider.Property;
import org.gradle.api.tasks.InputFile;
import org.gradle.api.tasks.Input;
import org.gradle.api.tasks.Internal;
import org.gradle.api.tasks.Optional;
import org.gradle.api.tasks.PathSensitive;
import org.gradle.api.tasks.PathSensitivity;
import org.gradle.api.tasks.TaskAction;

/**
 * Uploads the mappings of one variant under the build id of its BuildConfig. A configured file must exist, so that
 * the build fails rather than leaving traces without names.
 */
public abstract class UploadMappings extends DefaultTask {
	@Input
	public abstract Property<String> getServer();

	/** Not an input, so that build cache keys do not contain it. */
	@Internal
	public abstract Property<String> getKey();

	@Input
	public abstract Property<String> getBuildId();

	/** R8's mapping.txt. */
	@Optional
	@InputFile
	@PathSensitive(PathSensitivity.NONE)
	public abstract RegularFileProperty getRetrace();

	/** methodMapping.txt of btrace 2.0, RheaTrace or Matrix. */
	@Optional
	@InputFile
	@PathSensitive(PathSensitivity.NONE)
	public abstract RegularFileProperty getMethods();

	@TaskAction
	public void upload() throws IOException {
		if (!getKey().isPresent()) throw new GradleException("TRACEWELL_KEY is not set: an ingest or write key of the project");
		if (!getRetrace().isPresent() && !getMethods().isPresent())
			throw new GradleException("neither retrace nor methods is set: nothing would be sent");
		look(getRetrace());
		look(getMethods());
		MappingUpload to = new MappingUpload(URI.create(getServer().get()), getKey().get(), 2000);
		send(to, "retrace", getRetrace());
		send(to, "methods", getMethods());
	}

	private void look(RegularFileProperty of) {
		if (of.isPresent() && !of.get().getAsFile().isFile())
			throw new GradleException(of.get().getAsFile() + " is missing: was " + getBuildId().get() + " built with the recorder's plugin?");
	}

	private void send(MappingUpload to, String kind, RegularFileProperty of) throws IOException {
		if (!of.isPresent()) return;
		to.send(getBuildId().get(), kind, of.get().getAsFile());
		getLogger().lifecycle("{}: {} of {}", getServer().get(), kind, getBuildId().get());
	}
}
