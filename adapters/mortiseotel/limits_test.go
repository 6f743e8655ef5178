package mortiseotel_test

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// This module takes no duration, path or count. A new one needs a trial here.
func TestEveryInput(t *testing.T) { limits.Trials{}.Run(t, ".") }
