package mortise

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// walk visits all values that can be reached from v by reflection, also through unexported fields,
// and reports where a string or a slice of bytes contains the secret. It does not see the variables
// of closures, nor the far side of a channel.
type walk struct {
	t      *testing.T
	secret string
	seen   map[[2]uintptr]bool
	values int
}

func (w *walk) visit(v reflect.Value, path string) {
	if !v.IsValid() || len(path) > 2000 {
		return
	}
	w.values++
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), w.secret) {
			w.t.Errorf("%s keeps the secret", path)
		}
	case reflect.Pointer:
		if v.IsNil() || !w.first(v.Pointer(), v.Type()) {
			return
		}
		w.visit(v.Elem(), path)
	case reflect.Interface:
		if !v.IsNil() {
			w.visit(reachable(v.Elem()), path+".("+v.Elem().Type().String()+")")
		}
	case reflect.Struct:
		v = reachable(v)
		for i := range v.NumField() {
			f := v.Field(i)
			w.visit(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem(), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		if v.IsNil() || !w.first(v.Pointer(), v.Type()) {
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			whole := unsafe.Slice((*byte)(v.UnsafePointer()), v.Cap())
			if strings.Contains(string(whole), w.secret) {
				w.t.Errorf("%s keeps the secret", path)
			}
			return
		}
		fallthrough
	case reflect.Array:
		if k := v.Type().Elem().Kind(); k >= reflect.Bool && k <= reflect.Complex128 {
			return
		}
		for i := range v.Len() {
			w.visit(v.Index(i), path+"[]")
		}
	case reflect.Map:
		if v.IsNil() || !w.first(v.Pointer(), v.Type()) {
			return
		}
		for _, key := range v.MapKeys() {
			w.visit(reachable(key), path+"[key]")
			w.visit(reachable(v.MapIndex(key)), path+"[]")
		}
	}
}

func (w *walk) first(at uintptr, of reflect.Type) bool {
	key := [2]uintptr{at, reflect.ValueOf(of).Pointer()}
	seen := w.seen[key]
	w.seen[key] = true
	return !seen
}

// reachable returns v, or a copy of it, with fields whose addresses can be taken.
func reachable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// A program that prints a Node in a debugger, or a crash report with its memory, shows no secret.
func TestANodeKeepsNoSecret(t *testing.T) {
	const secret = "msk1_8b06eff9d884aff3122f597b40e3466123db53891ce2e1a68c79c6caa5f890b828caa9a0"
	node, err := Start(t.Context(), Config{Name: "n", Bind: "127.0.0.1:0", Secret: secret, OldSecrets: []string{
		secret}, Join: []string{"127.0.0.1:1"}, Replicas: 3, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Close(); err != nil { // so that nothing changes during the walk
		t.Error(err)
	}
	w := &walk{t: t, secret: secret[8:40], seen: map[[2]uintptr]bool{}}
	w.visit(reflect.ValueOf(node), "node")
	if t.Logf("%d values", w.values); w.values < 1000 {
		t.Errorf("only %d values were reached", w.values)
	}
	w = &walk{t: &testing.T{}, secret: secret[8:40], seen: map[[2]uintptr]bool{}}
	if w.visit(reflect.ValueOf(&struct{ inside any }{[]Config{{Secret: secret}}}), "x"); !w.t.Failed() {
		t.Error("the walk does not see a secret in a Config")
	}
}

// TestAHeldLockIsSmall holds the memory of a lock at its holder. The runtime has no size between
// 240 and 256 bytes. The state machine has such a test, too.
func TestAHeldLockIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(firstLock{}); size > 256 {
		t.Errorf("a lock and its request have %d bytes", size)
	}
}
