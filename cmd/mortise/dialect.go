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

// This file writes all JSON of the commands and of the agent in the dialect of package console: keys
// are in snake_case, times are RFC 3339, durations are seconds and their keys say so, tokens,
// positions and revisions are strings, since a JSON number may not hold them, and a list is never
// null. Keys come from the names of Go's fields, or from tags; testdata/json.txt holds them.

// dialect returns a value as one line.
func dialect(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := writeValue(&b, reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func writeValue(b *bytes.Buffer, v reflect.Value) error {
	if !v.IsValid() {
		return writePlain(b, nil)
	}
	if v.Type() == reflect.TypeFor[error]() && !v.IsNil() {
		return writePlain(b, v.Interface().(error).Error()) // a struct that is an error has fields
	}
	switch of := v.Interface().(type) {
	case time.Duration:
		return writePlain(b, of.Seconds())
	case json.Marshaler, encoding.TextMarshaler, []byte:
		return writePlain(b, of)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return writeValue(b, v.Elem())
	case reflect.Struct:
		return writeStruct(b, v)
	case reflect.Map:
		return writeMap(b, v)
	case reflect.Slice, reflect.Array:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeValue(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	return writePlain(b, v.Interface())
}

// writePlain writes what encoding/json writes.
func writePlain(b *bytes.Buffer, v any) error {
	text, err := json.Marshal(v)
	b.Write(text)
	return err
}

// writeMap writes a map whose keys are words of ours, or of users: they stay as they are.
func writeMap(b *bytes.Buffer, v reflect.Value) error {
	values := map[string]reflect.Value{}
	for _, key := range v.MapKeys() {
		values[key.String()] = v.MapIndex(key)
	}
	b.WriteByte('{')
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if err := writeKey(b, i > 0, key); err != nil {
			return err
		}
		if err := writeValue(b, values[key]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeKey(b *bytes.Buffer, more bool, key string) error {
	if more {
		b.WriteByte(',')
	}
	err := writePlain(b, key)
	b.WriteByte(':')
	return err
}

func writeStruct(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	more := false
	for _, f := range fieldsOf(v.Type()) {
		value, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omit(value) {
			continue // it is embedded by a nil pointer, or empty
		}
		if err := writeKey(b, more, f.key); err != nil {
			return err
		}
		more = true
		if f.quoted {
			err = writePlain(b, strconv.FormatUint(value.Uint(), 10))
		} else {
			err = writeValue(b, value)
		}
		if err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// member is one key of an object.
type member struct {
	key    string
	index  []int
	kind   reflect.Type
	quoted bool // a number that is written as a string
	omit   func(reflect.Value) bool
}

// fieldsOf lists the keys of a struct. Those of an embedded struct stand among its own.
func fieldsOf(t reflect.Type) (list []member) {
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() && !f.Anonymous || tag == "-" || f.Anonymous && tag == "" {
			continue
		}
		if at, found := t.FieldByName(f.Name); !found || !slices.Equal(at.Index, f.Index) {
			continue // another one, less deep, has its name
		}
		m := member{key: cmp.Or(tag, keyOf(f.Name, f.Type)), index: f.Index, kind: f.Type}
		m.quoted = f.Type.Kind() == reflect.Uint64 && (strings.Contains(options, "string") || f.Name == "Revision" || f.Name == "Position") &&
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

// keyOf makes a key of a field's name: LeaseFor, a duration, becomes lease_for_seconds.
func keyOf(name string, of reflect.Type) string {
	if of == reflect.TypeFor[error]() && name == "Err" {
		return "error"
	}
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
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
