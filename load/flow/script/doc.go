// Package script reads what users do from a YAML file, and makes programs of it.
//
// A [File] holds flows, lists of steps. [Parse] checks it as a whole and makes each list a
// [Program], which a [Walk] goes through: it gives the next [Request] or time to think, and
// sees to conditions and loops. A request is built from the [Values] that the user knows, and
// looks at its answer: checks it, and takes values from it. Nothing here sends or waits;
// package flow does.
package script
