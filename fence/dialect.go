package fence

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Dialect is the SQL syntax of a database: its placeholders, quotes and upsert statement.
type Dialect int

// The zero value is not a valid Dialect, so that a missing Dialect is an error.
const (
	PostgreSQL Dialect = iota + 1 // also other databases that support INSERT … ON CONFLICT; placeholder $1
	SQLite                        // 3.24 or later; placeholder ?
	MySQL                         // also MariaDB; placeholder ?
)

func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case SQLite:
		return "SQLite"
	case MySQL:
		return "MySQL"
	}
	return "Dialect(" + strconv.Itoa(int(d)) + ")"
}

// ErrBadName means that a text is not a valid name of a table or a column.
var ErrBadName = errors.New("fence: not a name of a table or column")

func (d Dialect) known() error {
	if d < PostgreSQL || d > MySQL {
		return fmt.Errorf("fence: %v is not a dialect: set it to PostgreSQL, SQLite or MySQL", d)
	}
	return nil
}

func (d Dialect) placeholder(n int) string {
	if d == PostgreSQL {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// maxName is the longest name in bytes that every supported database allows. PostgreSQL truncates
// longer names.
const maxName = 63

// quote returns name in quotes. It accepts only ASCII letters, digits and underscores, with at most
// one dot after a schema name, so name cannot contain a quote.
func (d Dialect) quote(name string) (string, error) {
	parts := strings.Split(name, ".")
	if len(parts) > 2 {
		return "", fmt.Errorf("%w: %.80q has more than one dot", ErrBadName, name)
	}
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	for i, part := range parts {
		if !plain(part) {
			return "", fmt.Errorf("%w: %.80q: 1 to %d ASCII letters, digits and underscores, no digit first",
				ErrBadName, name, maxName)
		}
		parts[i] = mark + part + mark
	}
	return strings.Join(parts, "."), nil
}

func (d Dialect) quoteColumn(name string) (string, error) {
	if strings.Contains(name, ".") {
		return "", fmt.Errorf("%w: the column %.80q has a dot", ErrBadName, name)
	}
	return d.quote(name)
}

func plain(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// nameType is the type of a column for names of resources or IDs of steps. The column must
// distinguish all names and be usable as a key.
func (d Dialect) nameType() string {
	if d == MySQL {
		// MySQL's text types treat A and a as equal, and some ignore trailing spaces.
		return fmt.Sprintf("varbinary(%d)", maxResource)
	}
	return "text"
}
