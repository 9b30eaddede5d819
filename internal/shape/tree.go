package shape

import (
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// Tree is whatever JSON can say, as encoding/json has it. It is for files whose keys another
// program knows: what that one finds wrong, and at which path, [Reader.Wrong] takes.
func Tree() Of[any] {
	return Of[any]{Schema{}, func(r *Reader, at Place, into *any) { *into = r.tree(at, 0) }}
}

func (r *Reader) tree(at Place, depth int) any {
	if depth > maxDeep { // aliases can stand for what holds them
		r.wrongAt(start(at.node), "too deep; at most %d lists or mappings within one another, aliases followed", maxDeep)
		return nil
	}
	n := r.arrive(at)
	switch v := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		all := map[string]any{}
		for _, x := range v.Values {
			name := text(x.Key)
			if _, twice := all[name]; twice {
				r.wrongAt(start(x.Key), "%s is there twice; say it once", name)
				continue
			}
			if name == "<<" {
				r.wrongAt(start(x.Key), "merge keys (<<) are not understood; write the keys out, or repeat single values by *alias")
				continue
			}
			all[name] = r.tree(Place{at.key(name), x.Value}, depth+1)
		}
		return all
	case *ast.SequenceNode:
		all := make([]any, len(v.Values))
		for i, x := range v.Values {
			all[i] = r.tree(Place{at.item(i), x}, depth+1)
		}
		return all
	case *ast.BoolNode:
		return v.Value
	case *ast.IntegerNode:
		if !octal(n) {
			return json.Number(fmt.Sprint(v.Value))
		}
	case *ast.FloatNode:
		return v.Value
	default:
		if _, ok := written(n); ok {
			return text(n) // the end of its last line included
		}
	}
	r.Misread(at.path, "%s: got %s; want a text, a number, true or false", Last(at.path), describe(n))
	return nil
}
