// Package shape reads a YAML file by its shape, and makes the file's JSON Schema from the same.
//
// A shape says how a value is written. Shapes are put together from smaller ones: an
// [Object] of keys, a [List], a [Dict], and single values such as [Duration]. [Decode] reads
// a document by one into Go values. It goes on after a mistake, so that a writer sees all of
// them at once, each with its line and column and what is allowed. The [Reader] keeps where
// each value stood, by its path, for checks that look at the file as a whole.
package shape
