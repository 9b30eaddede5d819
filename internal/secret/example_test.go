package secret_test

import (
	"fmt"

	"github.com/tarehq/tare/internal/secret"
)

func ExampleMaskAll() {
	fmt.Println(secret.MaskAll([]string{"tare", "ab", "-H", "Authorization: Bearer hunter2", "DB_URL=postgres://me:hunter2@db/shop ./api"}))
	// Output: [tare ab -H Authorization: … DB_URL=postgres://me:…@db/shop ./api]
}
