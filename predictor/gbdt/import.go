package gbdt

import (
	"bytes"
	"fmt"
	"io"
)

// Import reads a regression model that another library saved: LightGBM's text of version 4
// (Booster.save_model), or XGBoost's JSON of versions 1 to 3 (Booster.save_model("model.json")). All
// its trees are used; an early-stopped XGBoost model must be cut to its best iteration before it is
// saved. fields names the features of a row in order, and the model's features are found among them
// by name.
//
// Understood are numeric splits with missing values, and objectives whose forecast is the summed
// score, its exponential, or (LightGBM's reg_sqrt) its square. Anything else is refused by name:
// categorical splits, linear leaves, several outputs, rankings and classes. So is a file that is
// damaged, larger than 32 MiB, or whose forecasts might not be finite.
func Import(r io.Reader, fields []string) (*Forest, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, err
	}
	switch {
	case len(fields) > maxDim:
		return nil, fmt.Errorf("%d fields: more than %d", len(fields), maxDim)
	case bytes.HasPrefix(data, []byte("tree\n")) || bytes.HasPrefix(data, []byte("tree\r\n")):
		return lightGBM(data, fields)
	case bytes.HasPrefix(data, []byte("{L")):
		return nil, fmt.Errorf("XGBoost's binary JSON is not read: save the model under a name that ends in .json")
	case bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")):
		return xgboost(data, fields)
	case len(data) == 0:
		return nil, fmt.Errorf("the file is empty")
	default:
		return nil, fmt.Errorf("starts with %q: neither LightGBM's text nor XGBoost's JSON", data[:min(len(data), 12)])
	}
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the model: %w", err)
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxBytes)
	}
	return data, nil
}
