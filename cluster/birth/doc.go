// Package birth founds a group once.
package birth
