package main

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The commands and the agent write JSON in the same form as package console. Keys are in
// snake_case. Times are in RFC 3339. Durations are in seconds, and their keys end in _seconds.
// Tokens, positions and revisions are strings, because in some languages JSON numbers cannot hold
// 64 bits. A list is never null. Keys are derived from the names of Go fields, or from tags. The
// file testdata/json.txt lists all keys.

func dialect(v any) ([]byte, error) {
	w := &writer{members: map[reflect.Type][]member{}}
	if err := w.value(reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	w.WriteByte('\n')
	return w.Bytes(), nil
}

type writer struct {
	bytes.Buffer
	members map[reflect.Type][]member
}

func (w *writer) value(v reflect.Value) error {
	if !v.IsValid() {
		return w.plain(nil)
	}
	if v.Type() == reflect.TypeFor[error]() && !v.IsNil() {
		return w.plain(v.Interface().(error).Error()) // an error that is a struct would be written as its fields
	}
	switch of := v.Interface().(type) {
	case time.Duration:
		return w.plain(of.Seconds())
	case json.Marshaler, encoding.TextMarshaler, []byte:
		return w.plain(of)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return w.value(v.Elem())
	case reflect.Struct:
		return w.object(v)
	case reflect.Map:
		return w.table(v)
	case reflect.Slice, reflect.Array:
		w.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := w.value(v.Index(i)); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	}
	return w.plain(v.Interface())
}

func (w *writer) plain(v any) error {
	text, err := json.Marshal(v)
	w.Write(text)
	return err
}

func (w *writer) table(v reflect.Value) error {
	values := map[string]reflect.Value{}
	for _, key := range v.MapKeys() {
		values[key.String()] = v.MapIndex(key)
	}
	w.WriteByte('{')
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if err := w.key(i > 0, key); err != nil {
			return err
		}
		if err := w.value(values[key]); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func (w *writer) key(more bool, key string) error {
	if more {
		w.WriteByte(',')
	}
	err := w.plain(key)
	w.WriteByte(':')
	return err
}

func (w *writer) object(v reflect.Value) error {
	w.WriteByte('{')
	more := false
	all, known := w.members[v.Type()]
	if !known {
		all = fieldsOf(v.Type())
		w.members[v.Type()] = all
	}
	for _, f := range all {
		value, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omit(value) {
			continue
		}
		if err := w.key(more, f.key); err != nil {
			return err
		}
		more = true
		if f.quoted {
			err = w.plain(strconv.FormatUint(value.Uint(), 10))
		} else {
			err = w.value(value)
		}
		if err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

type member struct {
	key    string
	index  []int
	kind   reflect.Type
	quoted bool
	omit   func(reflect.Value) bool
}

func fieldsOf(t reflect.Type) (list []member) {
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() && !f.Anonymous || tag == "-" || f.Anonymous && tag == "" {
			continue
		}
		if at, found := t.FieldByName(f.Name); !found || !slices.Equal(at.Index, f.Index) {
			continue // a field at a lower depth has the same name
		}
		m := member{key: cmp.Or(tag, keyOf(f.Name, f.Type)), index: f.Index, kind: f.Type}
		m.quoted = f.Type.Kind() == reflect.Uint64 && (strings.Contains(options, "string") || f.Name == "Revision" ||
			f.Name == "Position") &&
			!f.Type.Implements(reflect.TypeFor[json.Marshaler]())
		m.omit = func(v reflect.Value) bool {
			switch {
			case f.Type == reflect.TypeFor[error](), strings.Contains(options, "omitzero"):
				return v.IsZero()
			case strings.Contains(options, "omitempty"):
				return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
			}
			return f.Type == reflect.TypeFor[time.Time]() && v.IsZero()
		}
		list = append(list, m)
	}
	return list
}

// keyOf derives a key from the name and type of a field: LeaseFor, a duration, becomes
// lease_for_seconds.
func keyOf(name string, of reflect.Type) string {
	if of == reflect.TypeFor[error]() && name == "Err" {
		return "error"
	}
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) &&
			unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	if of == reflect.TypeFor[time.Duration]() {
		b.WriteString("_seconds")
	}
	return b.String()
}
