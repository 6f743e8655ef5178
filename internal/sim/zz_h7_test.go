package sim

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
)

func TestZZ(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("ZZ"), 10, 64)
	if err != nil {
		t.Skip()
	}
	cfg := Draw(seed)
	cfg.Verbose = true
	cryptotest.SetGlobalRandom(t, seed)
	r := Run(cfg)
	for _, n := range r.Transcript {
		if !strings.Contains(n, " call ") || os.Getenv("ZZCALLS") != "" {
			fmt.Println(n)
		}
	}
	fmt.Println(r.Fault)
}
