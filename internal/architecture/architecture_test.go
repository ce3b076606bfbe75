package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module   = "github.com/presage-router/presage/"
	root     = "../.."
	maxLines = 500
)

// floors orders the top folders: a package imports its own top folder and lower floors only.
var floors = map[string]int{
	"cmd": 6, "lab": 5, "training": 4, "router": 3, "models": 3, "predictor": 2, "datasets": 2, "features": 1, "internal": 0,
}

// homes lists, for each heavy module, the only folders that may import it.
var homes = map[string][]string{
	"github.com/sjwhitworth/golearn":        {"training/baseline"},
	"github.com/dgraph-io/badger":           {"training/trace"},
	"github.com/envoyproxy":                 {"router/extproc", "lab/gateway"},
	"google.golang.org/grpc":                {"router/extproc", "lab/gateway"},
	"github.com/prometheus/client_golang":   {"internal/telemetry", "router/admin"},
	"github.com/goccy/go-yaml":              {"cmd/internal/config", "features/discover", "lab/workload"},
	"github.com/parquet-go":                 {"datasets"},
	"github.com/alecthomas/kong":            {"cmd"},
	"github.com/prometheus/common/expfmt":   {"features/scrape"},
	"github.com/go-json-experiment/json":    {"features", "router", "lab", "datasets", "predictor"},
	"github.com/prometheus/client_model":    {"features/scrape", "internal/telemetry", "router/admin"},
	"github.com/rogpeppe/go-internal":       {"cmd"},
	"gonum.org/v1/gonum":                    {"internal/stat", "predictor", "training", "lab"},
	"github.com/tinylib/msgp":               {"features/prefix", "lab/emulator"},
	"sigs.k8s.io":                           nil,
	"k8s.io":                                nil,
	"github.com/stretchr/testify":           nil,
	"encoding/gob":                          nil, // code-bearing or Go-only formats never leave the process
	"github.com/presage-router/presage/cmd": {"cmd"},
}

type file struct {
	path string // slash-separated, from the root of the repository
	dir  string
	ast  *ast.File
	fset *token.FileSet
	size int // lines
	gen  bool
}

func sources(t *testing.T) []file {
	t.Helper()
	var out []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, src, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		out = append(out, file{
			path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), ast: f, fset: fset,
			size: bytes.Count(src, []byte("\n")), gen: ast.IsGenerated(f),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found only %d files", len(out))
	}
	return out
}

func within(dir, home string) bool { return dir == home || strings.HasPrefix(dir, home+"/") }

func top(dir string) string { return strings.SplitN(dir, "/", 2)[0] }

func imports(f file) []string {
	var out []string
	for _, im := range f.ast.Imports {
		p, err := strconv.Unquote(im.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

func TestFloors(t *testing.T) {
	for _, f := range sources(t) {
		own, known := floors[top(f.dir)]
		if !known {
			t.Errorf("%s: folder %q has no floor", f.path, top(f.dir))
			continue
		}
		for _, im := range imports(f) {
			rest, ours := strings.CutPrefix(im, module)
			if !ours {
				continue
			}
			if to := top(rest); to != top(f.dir) && floors[to] >= own {
				t.Errorf("%s imports %s: only its own folder and lower floors are allowed", f.path, rest)
			}
		}
	}
}

func TestOneHomePerHeavyDependency(t *testing.T) {
	for _, f := range sources(t) {
		for _, im := range imports(f) {
			for mod, allowed := range homes {
				if im != mod && !strings.HasPrefix(im, mod+"/") {
					continue
				}
				if !slices.ContainsFunc(allowed, func(h string) bool { return within(f.dir, h) }) {
					t.Errorf("%s imports %s, whose home is %v", f.path, im, allowed)
				}
			}
		}
	}
}

// TestServiceLinksNoLab: the serving binary must not carry the lab, the offline trainers or parquet.
func TestServiceLinksNoLab(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./cmd/presage")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, dep := range strings.Fields(string(out)) {
		for _, banned := range []string{module + "lab", module + "training/baseline", "github.com/sjwhitworth/golearn", "github.com/parquet-go", "testing"} {
			if dep == banned || strings.HasPrefix(dep, banned+"/") {
				t.Errorf("cmd/presage links %s", dep)
			}
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range sources(t) {
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		documented[f.dir] = documented[f.dir] || f.ast.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

func TestFilesStaySmall(t *testing.T) {
	for _, f := range sources(t) {
		if f.size > maxLines && !f.gen {
			t.Errorf("%s has %d lines, more than %d", f.path, f.size, maxLines)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range sources(t) {
		if strings.HasSuffix(f.path, "_test.go") || f.ast.Name.Name == "main" || f.gen {
			continue
		}
		undocumented := func(pos token.Pos, name string) {
			t.Errorf("%s:%d: exported %s has no comment", f.path, f.fset.Position(pos).Line, name)
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					undocumented(d.Pos(), d.Name.Name)
				}
			case *ast.GenDecl:
				checkGroup(d, undocumented)
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if ix, ok := typ.(*ast.IndexExpr); ok {
		typ = ix.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported() && !guaranteed[d.Name.Name]
}

// guaranteed are methods whose contract a well-known interface states.
var guaranteed = map[string]bool{"String": true, "Error": true, "Name": true, "Unwrap": true, "Len": true, "Less": true, "Swap": true, "Category": true, "Route": true, "Filter": true, "Score": true, "Pick": true, "Collect": true, "Describe": true, "ServeHTTP": true, "MarshalJSON": true, "Run": true, "Help": true}

func checkGroup(d *ast.GenDecl, undocumented func(token.Pos, string)) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
				undocumented(s.Pos(), s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					undocumented(n.Pos(), n.Name)
				}
			}
		}
	}
}
