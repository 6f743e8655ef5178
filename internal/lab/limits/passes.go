package limits

import (
	"context"
	"errors"
	"net"
	"reflect"
	"testing"
	"time"
)

// PassesErrors fails the test unless decorated passes on the error of each method of the interface
// I, whose methods in base all fail with an error that wraps cause. The methods get zero values,
// and a byte for each slice of bytes. Close is called last.
func PassesErrors[I any](t *testing.T, cause error, base, decorated I) {
	t.Helper()
	of, fails := reflect.TypeFor[I](), 0
	var last []reflect.Method
	call := func(m reflect.Method) {
		t.Helper()
		for i := range m.Type.NumOut() {
			if m.Type.Out(i) != reflect.TypeFor[error]() {
				continue
			}
			fails++
			for name, v := range map[string]I{"the base": base, reflect.TypeOf(decorated).String(): decorated} {
				out := reflect.ValueOf(v).MethodByName(m.Name).Call(arguments(t, m))
				if err, _ := out[i].Interface().(error); !errors.Is(err, cause) {
					t.Errorf("%s: %s fails with %v, want %v", name, m.Name, err, cause)
				}
			}
		}
	}
	for i := range of.NumMethod() {
		if m := of.Method(i); m.Name == "Close" {
			last = append(last, m)
		} else {
			call(m)
		}
	}
	for _, m := range last {
		call(m)
	}
	if fails == 0 {
		t.Errorf("no method of %v can fail", of)
	}
}

// arguments returns a value for each parameter of a method of an interface.
func arguments(t *testing.T, m reflect.Method) (all []reflect.Value) {
	for i := range m.Type.NumIn() {
		switch in := m.Type.In(i); {
		case in == reflect.TypeFor[context.Context]():
			all = append(all, reflect.ValueOf(t.Context()))
		case in == reflect.TypeFor[[]byte]():
			all = append(all, reflect.ValueOf([]byte{1}))
		case in.Kind() == reflect.Pointer:
			all = append(all, reflect.New(in.Elem()))
		default:
			all = append(all, reflect.Zero(in))
		}
	}
	return all
}

// FailingConn is a net.Conn whose calls all fail with Err. Reads fail after the bytes in Before.
type FailingConn struct {
	Err    error
	Before []byte
}

// Read implements net.Conn.
func (c *FailingConn) Read(b []byte) (int, error) {
	n := copy(b, c.Before)
	c.Before = c.Before[n:]
	if n > 0 {
		return n, nil
	}
	return 0, c.Err
}

// Write implements net.Conn.
func (c *FailingConn) Write([]byte) (int, error) { return 0, c.Err }

// Close implements net.Conn.
func (c *FailingConn) Close() error { return c.Err }

// LocalAddr implements net.Conn.
func (*FailingConn) LocalAddr() net.Addr { return nil }

// RemoteAddr implements net.Conn.
func (*FailingConn) RemoteAddr() net.Addr { return nil }

// SetDeadline implements net.Conn.
func (c *FailingConn) SetDeadline(time.Time) error { return c.Err }

// SetReadDeadline implements net.Conn.
func (c *FailingConn) SetReadDeadline(time.Time) error { return c.Err }

// SetWriteDeadline implements net.Conn.
func (c *FailingConn) SetWriteDeadline(time.Time) error { return c.Err }
