// Merge this into app/build.gradle.kts and copy buildSrc next to settings.gradle.kts. Gradle 7.4, AGP 7.4 and later.
import com.android.build.api.artifact.SingleArtifact
import com.android.build.api.variant.BuildConfigField

val tracewell = providers.environmentVariable("TRACEWELL_URL").getOrElse("https://traces.example.com")
val buildNumber = providers.environmentVariable("BUILD_NUMBER").getOrElse("local")

android {
    buildFeatures { buildConfig = true } // off by default since AGP 8
    defaultConfig {
        buildConfigField("String", "TRACEWELL_URL", "\"$tracewell\"")
        // an ingest key: extracted from the app, it can upload traces and mappings but not read
        buildConfigField("String", "TRACEWELL_INGEST_KEY", "\"${providers.environmentVariable("TRACEWELL_INGEST_KEY").getOrElse("")}\"")
    }
}

androidComponents {
    onVariants { variant ->
        val suffix = variant.name.replaceFirstChar { it.uppercase() }
        // the same id in the app and for its mappings
        val id = variant.outputs.first().versionName.map { "$it-$buildNumber-${variant.name}" }
        variant.buildConfigFields?.put("BUILD_ID", id.map { BuildConfigField("String", "\"$it\"", null) })

        // ./gradlew assembleFreeRelease uploadFreeReleaseMappings
        val minified = android.buildTypes.getByName(variant.buildType!!).isMinifyEnabled
        val recorder = providers.gradleProperty("tracewell.recorder").orNull // btrace2, matrix or none
        if (minified || recorder != null) {
            tasks.register<UploadMappings>("upload${suffix}Mappings") {
                server.set(tracewell)
                key.set(providers.environmentVariable("TRACEWELL_KEY"))
                buildId.set(id)
                if (minified) retrace.set(variant.artifacts.get(SingleArtifact.OBFUSCATION_MAPPING_FILE))
                if (recorder != null) {
                    dependsOn("assemble$suffix") // which writes the mapping, but not as a declared output
                    val folder = if (recorder == "matrix") "mapping" else "rhea"
                    methods.set(layout.buildDirectory.file("outputs/$folder/${variant.name}/methodMapping.txt"))
                }
            }
        }
    }
}
