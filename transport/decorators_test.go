package transport

import (
	"bufio"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// Each decorator of a connection passes its errors on. A new one fails the test until it is listed.
func TestConnsPassErrorsOn(t *testing.T) {
	cause := errors.New("the call fails")
	base := func() net.Conn { return &limits.FailingConn{Err: cause} }
	var names []string
	for _, decorate := range []func() net.Conn{
		func() net.Conn { return &guardedConn{Conn: base(), guard: newGuard(nil, nil)} },
		func() net.Conn { return &probe{Conn: base(), gone: make(chan struct{})} },
		func() net.Conn {
			return newTally(base(), "", fair.NewRates(fair.Rate{Every: unpaidEvery, Burst: unpaidBurst}), func() {})
		},
		func() net.Conn { return &unread{Conn: base(), in: bufio.NewReader(base())} },
		func() net.Conn {
			l := &listener{conns: map[*accepted]struct{}{}}
			return &accepted{Conn: base(), listener: l, guard: newGuard(nil, nil), gone: make(chan struct{}),
				shook: true}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			decorated := decorate()
			names = append(names, reflect.TypeOf(decorated).Elem().Name())
			limits.PassesErrors(t, cause, base(), decorated)
		})
	}
	for _, name := range embedding(t, "net", "Conn") {
		if !slices.Contains(names, name) {
			t.Errorf("%s embeds a net.Conn and is not tried", name)
		}
	}
}

// embedding returns the types of this package that embed an interface of another package.
func embedding(t *testing.T, pkg, name string) (types []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		p, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(p, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range s.Fields.List {
				sel, ok := f.Type.(*ast.SelectorExpr)
				if ok && len(f.Names) == 0 && sel.Sel.Name == name && sel.X.(*ast.Ident).Name == pkg {
					types = append(types, spec.Name.Name)
				}
			}
			return true
		})
	}
	return types
}
