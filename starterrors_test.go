package mortise_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

// Start names the field and the way out. Mistakes in Config alone are in config_test.go.
func TestStartNamesTheMistakeAndTheStep(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "gone")
	for name, c := range map[string]struct {
		ctx    context.Context
		config mortise.Config
		is     error
		want   string
	}{
		"a nil context": {nil, mortise.Config{}, mortise.ErrBadRequest,
			"mortise: bad request: Start: the context is nil: pass context.Background() if you have none"},
		"a missing parent of Dir": {t.Context(), mortise.Config{Dir: filepath.Join(parent, "locks")}, nil,
			"its parent " + parent + " does not exist: create it, mount its volume, or correct the path"},
	} {
		t.Run(name, func(t *testing.T) {
			node, err := mortise.Start(c.ctx, c.config) //nolint:staticcheck // a nil context is one of the mistakes
			if err == nil {
				_ = node.Close()
			}
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.HasSuffix(err.Error(), c.want) ||
				c.config.Dir != "" && !strings.Contains(err.Error(), "Config.Dir") {
				t.Errorf("Start says\n%v, want at its end\n%s", err, c.want)
			}
		})
	}
}
