package mortisemigrate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4/database/stub"

	"github.com/mortise-lock/mortise/adapters/mortisemigrate"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/mortisetest"
)

func TestEveryInput(t *testing.T) {
	limits.Trials{
		Durations: map[string]func(*testing.T, time.Duration){
			"Options.Wait": func(t *testing.T, d time.Duration) {
				synctest.Test(t, func(t *testing.T) {
					c := mortisetest.New(t, 1)
					held, err := c.Node(0).Lock(t.Context(), "k")
					if err != nil {
						t.Fatal(err)
					}
					ctx := t.Context()
					go func() {
						time.Sleep(time.Minute)
						_ = held.Unlock(ctx)
					}()
					driver := mortisemigrate.Wrap(&stub.Stub{}, c.Node(0), "k", mortisemigrate.Options{Wait: d})
					if err := driver.Lock(); err != nil {
						t.Fatalf("with %v: %v", d, err)
					}
					if err := driver.Unlock(); err != nil {
						t.Error(err)
					}
				})
			},
		},
		Exempt: map[string]string{"Driver.SetVersion(version)": "the version of a schema, which the database stores"},
	}.Run(t, ".")
}
