//go:build unix

package mortise

import (
	"log/slog"
	"os"
	"strings"
	"testing"
)

func TestASecretFileOpenToOthersIsToldOf(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	for mode, warned := range map[os.FileMode]string{0o600: "", 0o400: "", 0o666: "mode=0666", 0o604: "mode=0604", 0o620: "mode=0620"} {
		path := secretFile(t, goodSecret)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var log lines
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		c, err := configFromEnv("X", []string{"X_SECRET_FILE=" + path})
		if err != nil || c.Secret != goodSecret {
			t.Errorf("%o: %v", mode, err)
		}
		all := log.matching("")
		if warned == "" && len(all) != 0 {
			t.Errorf("%o: %q", mode, all)
		}
		if warned != "" && (len(all) != 1 || !strings.Contains(all[0], "level=WARN") || !strings.Contains(all[0], warned) || !strings.Contains(all[0], "path="+path) || !strings.Contains(all[0], "chmod 600") ||
			strings.Contains(all[0], goodSecret)) {
			t.Errorf("%o: %q", mode, all)
		}
	}
}
