package telemetry

import "runtime/debug"

// Build says which program this is.
type Build struct {
	Version  string // of the module, or "devel"
	Revision string // of the source, or "unknown"; "+changes" after it: the tree was not clean
	Go       string // release of the compiler
}

// ReadBuild returns what the linker noted about the running program.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: info.Main.Version, Revision: "unknown", Go: info.GoVersion}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	changed := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	if changed {
		b.Revision += "+changes"
	}
	return b
}

// String returns the line that a version command prints.
func (b Build) String() string { return b.Version + " (" + b.Revision + ", " + b.Go + ")" }
