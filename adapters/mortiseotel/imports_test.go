package mortiseotel_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOnlyTheAPIIsImported(t *testing.T) {
	may := []string{
		"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/trace",
		"github.com/mortise-lock/mortise", "github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if strings.Contains(path, ".") && !slices.Contains(may, path) {
				t.Errorf("%s imports %s", name, path)
			}
			seen++
		}
	}
	if seen < 10 {
		t.Errorf("only %d imports were seen", seen)
	}
}
