package compare

// ScenarioGates judges what is promised of single scenarios, where these were played.
func ScenarioGates(cells []Cell) []Gate {
	var gates []Gate
	var slow, slowFirst, n float64
	for i := range cells {
		c := &cells[i]
		switch {
		case c.Scenario == "mixed-gpus" && c.Theirs.Attainment < 85:
			gates = append(gates,
				gate("mixed GPUs where the best baseline is below 85 %, attainment", c.Ours.Attainment, 95, at(c)),
				gate("the same, points against the best baseline", c.Diff.Mean, 10, at(c)))
		case c.Scenario == "slow-endpoint":
			n++
			slow += c.Diff.Mean
			if first, ok := c.Also["argmin-ttft"]; ok {
				slowFirst += first.Diff.Mean
			}
		case c.Scenario == "shift" && c.Load == 1.4:
			gates = append(gates, gate("regime shift, share that mean TTFT is shorter than the best baseline's", 1-c.Ours.TTFTMean/c.Theirs.TTFTMean, 0.2, at(c)))
		case c.Scenario == "shift" && c.Load == 1.25:
			gates = append(gates, gate("regime shift, share that mean TTFT is shorter than the best baseline's", 1-c.Ours.TTFTMean/c.Theirs.TTFTMean, 0, at(c)))
		}
	}
	if n > 0 {
		gates = append(gates,
			gate("an endpoint three times slower, points against the best baseline", slow/n, 4, "mean over its loads"),
			gate("the same, points against argmin-ttft", slowFirst/n, 2, "mean over its loads"))
	}
	return gates
}
