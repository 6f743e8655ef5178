package mortisecertmagic_test

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestEveryInput(t *testing.T) {
	limits.Trials{Exempt: map[string]string{
		"Storage.RenewLockLease(_)": "the duration is ignored: the node renews its locks",
	}}.Run(t, ".")
}
