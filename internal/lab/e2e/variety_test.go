package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// variety is what all nodes of a fleet have beside what the test configures: all Hooks, or
// certificates of Config.TLS. Some tests have one, which their names decide. With
// MORTISE_FLEETS=hooks or tls all tests with a fault have this one, and those without a fault are
// skipped.
type variety struct {
	name      string
	certified func(*mortise.Config)
}

const (
	plainFleet = "plain"
	hooked     = "hooks"
	certified  = "tls"
)

const lined = "counts the lines of a log, and a hook that panics writes one"

// undisturbed are the tests that a variety would disturb, with the reason.
var undisturbed = map[string]map[string]string{
	hooked: {
		"TestAnHourOfLittle":              lined,
		"TestAnHourOfNothing":             lined,
		"TestAReplicaThatDivergesIsFound": lined,
		"TestOneLineForAChange":           lined,
		"TestWhatRepeatsIsSaidSeldom":     lined,
		"TestWords":                       "compares all lines of the logs",
		"TestASlowHookStopsNothing":       "has a slow hook itself, and counts what is dropped",
	},
	certified: {},
}

func varietyOf(root string) string {
	switch drawn(root) % 16 {
	case 3:
		return hooked
	case 5:
		return certified
	}
	return plainFleet
}

func (v *variety) begin(t *testing.T) {
	root, _, _ := strings.Cut(t.Name(), "/")
	all := os.Getenv("MORTISE_FLEETS")
	if v.name = cmp.Or(all, varietyOf(root)); undisturbed[v.name][root] != "" {
		v.name = plainFleet
	}
	if all != "" && (v.name == plainFleet || !shares().faults[root]) {
		t.Skip("it has no fault, or a reason in undisturbed")
	}
	if v.name == certified {
		v.certified = newCompany(t).named("fleet.internal", "fleet.internal")
	}
}

// change sets what the test has left unset.
func (v *variety) change(c *mortise.Config) {
	switch {
	case v.name == hooked:
		c.Hooks = allHooks(c.Hooks)
	case v.name == certified && c.Insecure:
		v.certified(c)
	}
}

const (
	hookPause = 2 * time.Millisecond // how long a hook blocks
	hookFails = 7                    // each call of this number panics
)

// allHooks returns hooks in which each field is set. Those that h lacks panic at times, and block
// for a while if the node calls them. One that runs in a call would only delay that call, and the
// tests tell the order of calls.
func allHooks(h *mortise.Hooks) *mortise.Hooks {
	var all mortise.Hooks
	if h != nil {
		all = *h
	}
	for field, v := range reflect.ValueOf(&all).Elem().Fields() {
		if !v.IsNil() {
			continue
		}
		calls, inCall := new(atomic.Int64), v.Type().In(0) == reflect.TypeFor[context.Context]()
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) (out []reflect.Value) {
			if !inCall {
				time.Sleep(hookPause)
			}
			if calls.Add(1)%hookFails == 0 {
				panic(fmt.Sprint("hook ", field.Name, " of the test"))
			}
			for o := range v.Type().Outs() {
				switch o.Kind() {
				case reflect.Slice:
					out = append(out, reflect.ValueOf([]byte("mark")))
				default:
					out = append(out, reflect.ValueOf("tag").Convert(o))
				}
			}
			return out
		}))
	}
	return &all
}

// Each hook is set, is called, and has failed: a new field of Hooks is covered by itself.
func TestAllHooksAreSet(t *testing.T) {
	for field, v := range reflect.ValueOf(allHooks(nil)).Elem().Fields() {
		failed := 0
		for range hookFails {
			func() {
				defer func() {
					if recover() != nil {
						failed++
					}
				}()
				var in []reflect.Value
				for i := range v.Type().Ins() {
					in = append(in, reflect.Zero(i))
				}
				v.Call(in)
			}()
		}
		if failed != 1 {
			t.Errorf("%s failed %d times in %d calls", field.Name, failed, hookFails)
		}
	}
}
