package lockfsm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestTheGoldenLogHasEverything checks that each kind of command, each field of Command and each
// code occurs in the golden log of this build. Otherwise the fingerprint would not show a change of
// that kind, field or code. If it fails, extend writeGolden and rewrite the log.
func TestTheGoldenLogHasEverything(t *testing.T) {
	b, err := os.ReadFile(goldenFile(RulesVersion))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range missing(t, b) {
		t.Errorf("the golden log has no %s", name)
	}
}

// missing lists what a golden log lacks.
func missing(t *testing.T, b []byte) (lacks []string) {
	t.Helper()
	kinds, codes, fields := map[Kind]int{}, map[Code]int{}, map[string]int{}
	var m *Machine
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		last, err := hex.DecodeString(words[len(words)-1])
		if err != nil {
			t.Fatal(err)
		}
		switch words[0] {
		case "start":
			if m, err = Restore(last); err != nil {
				t.Fatal(err)
			}
		case "fill":
			g := &golden{t: t, m: m, index: 1, results: sha256.New(), seen: map[outcome]int{}}
			g.fill(binary.BigEndian.Uint32(last))
			for o, n := range g.seen {
				kinds[o.kind], codes[o.code] = kinds[o.kind]+n, codes[o.code]+n
			}
		case "entry":
			term, _ := strconv.ParseUint(words[2], 10, 64)
			m.ApplyEntry(1, term, last, func(r *Result) { codes[r.Code]++ })
			for command, rest, err := Next(last); err == nil; command, rest, err = Next(rest) {
				if c, err := Decode(command); err == nil {
					kinds[c.Kind]++
					count(fields, reflect.ValueOf(c))
				}
			}
		}
	}
	for name, value := range constants(t, "Kind") {
		if kinds[Kind(value)] == 0 {
			lacks = append(lacks, "command of the kind "+name)
		}
	}
	for name, value := range constants(t, "Code") {
		if codes[Code(value)] == 0 {
			lacks = append(lacks, "result with the code "+name)
		}
	}
	for _, name := range names(reflect.TypeFor[Command]()) {
		if fields[name] == 0 {
			lacks = append(lacks, "command with the field "+name)
		}
	}
	return lacks
}

// count counts the fields of a struct that are set, also those of embedded structs.
func count(fields map[string]int, v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case f.Anonymous:
			count(fields, v.Field(i))
		case !v.Field(i).IsZero():
			fields[f.Name]++
		}
	}
}

// names lists the fields of a struct, also those of embedded structs.
func names(of reflect.Type) (all []string) {
	for i := range of.NumField() {
		if f := of.Field(i); f.Anonymous {
			all = append(all, names(f.Type)...)
		} else {
			all = append(all, f.Name)
		}
	}
	return all
}

// constants returns the constants of a type that this build declares, by name.
func constants(t *testing.T, of string) map[string]uint64 {
	t.Helper()
	found := map[string]uint64{}
	keep := func(f fs.FileInfo) bool {
		next := strings.HasSuffix(f.Name(), "_nextrules.go")
		return !strings.HasSuffix(f.Name(), "_test.go") && (!next || RulesVersion >= marksVersion)
	}
	packages, err := parser.ParseDir(token.NewFileSet(), ".", keep, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(packages["lockfsm"], func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok || len(s.Values) != 1 {
			return true
		}
		kind, isName := s.Type.(*ast.Ident)
		value, isNumber := s.Values[0].(*ast.BasicLit)
		if isName && isNumber && kind.Name == of {
			number, err := strconv.ParseUint(value.Value, 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			found[s.Names[0].Name] = number
		}
		return true
	})
	if len(found) < 10 {
		t.Fatalf("found only %d constants of type %s", len(found), of)
	}
	return found
}
