package mortise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

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

// TestANilContextIsAnError calls each method with a context that is nil. A method that ends a lock
// or the node works as with a context that never ends. The others return ErrBadRequest with the way
// out, and change nothing.
func TestANilContextIsAnError(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	session, err := node.NewSession(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := node.Acquire(t.Context(), mortise.Request{Key: "k", Mode: mortise.Upgradable})
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]bool{"Unlock": true, "Detach": true, "Downgrade": true, "Regain": true, "Leave": true,
		"Session.Close": true}
	parameter := reflect.TypeFor[context.Context]()
	tried := 0
	for _, on := range []any{node, session, lock} {
		of := reflect.ValueOf(on)
		for i := range of.NumMethod() {
			name, method := of.Type().Method(i).Name, of.Method(i)
			if on == any(session) {
				name = "Session." + name
			}
			if method.Type().NumIn() == 0 || method.Type().In(0) != parameter || name == "Context" || ends[name] {
				continue
			}
			tried++
			err := resultOf(t, name, method)
			if name == "Upgrade" && !strings.Contains(fmt.Sprint(err), "Upgrade: ") {
				t.Errorf("Upgrade: %v", err)
			}
			if !errors.Is(err, mortise.ErrBadRequest) ||
				!strings.HasSuffix(err.Error(), "the context is nil: pass context.Background() if you have none") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if tried < 30 {
		t.Errorf("%d methods were tried", tried)
	}
	for _, err := range []error{lock.Unlock(nil), session.Close(nil), node.Leave(nil)} { //nolint:staticcheck // see above
		if err != nil {
			t.Error(err)
		}
	}
}

// resultOf calls a method with a nil context and with arguments that are no mistakes.
func resultOf(t *testing.T, name string, method reflect.Value) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panics: %v", name, p)
		}
	}()
	in := []reflect.Value{reflect.Zero(method.Type().In(0))}
	for i := 1; i < method.Type().NumIn(); i++ {
		switch kind := method.Type().In(i); kind {
		case reflect.TypeFor[string]():
			in = append(in, reflect.ValueOf("7"))
		case reflect.TypeFor[[]string](): // variadic
			in = append(in, reflect.ValueOf("7"))
		case reflect.TypeFor[int]():
			in = append(in, reflect.ValueOf(7))
		case reflect.TypeFor[mortise.Token](), reflect.TypeFor[time.Duration]():
			in = append(in, reflect.ValueOf(time.Second).Convert(kind))
		case reflect.TypeFor[mortise.Request]():
			in = append(in, reflect.ValueOf(mortise.Request{Key: "7"}))
		case reflect.TypeFor[[]mortise.Request]():
			in = append(in, reflect.ValueOf([]mortise.Request{{Key: "7"}}))
		default:
			in = append(in, reflect.Zero(kind))
		}
	}
	results := method.Call(in)
	last := results[len(results)-1]
	if last.Kind() != reflect.Func {
		err, _ = last.Interface().(error)
		return err
	}
	for _, second := range last.Seq2() { // what it yields ends with an error
		err, _ = second.Interface().(error)
	}
	return err
}
