# Reads `lockstep simulate experiments/a100-vs-v100.yaml --json` and prints it beside a published table.
# The blog (PyTorch 1.10, CUDA 11.3) states neither batch nor card count (3.5x to 3.7x suggests 4) and does not name its Transformer (nor its unit).
function text(line) { gsub(/.*": "|",?$/, "", line); return line }
function number(line) { gsub(/.*": |,$/, "", line); return line }
/^      "model":/   { model = text($0) }
/^      "machine":/ { machine = text($0) }
/^      "ranks":/   { ranks = number($0) }
/^        "value":/ { rate[model, machine, ranks] = number($0) }
function row(title, model, unit, a1, v1, a4, v4,    a, v) {
    a = "dgx-a100-40gb"; v = "dgx-1v-16gb"
    printf "%-24s %6d %6d  %6d %6d   %5.2f   |  %5d %5d  %5d %5d   %5.2f\n", title, rate[model, a, 1], rate[model, v, 1], rate[model, a, 4], rate[model, v, 4],
        rate[model, a, 4] / rate[model, v, 4], a1, v1, a4, v4, a4 / v4
}
END {
    printf "%-24s %-37s |  %s\n", "", "predicted by lockstep", "the blog's table"
    printf "%-24s %-13s  %-13s   %-7s |  %-11s  %-11s\n", "", "1 card", "4 cards", "", "1 card", "several"
    printf "%-24s %6s %6s  %6s %6s   %5s   |  %5s %5s  %5s %5s   %5s\n", "", "A100", "V100", "A100", "V100", "ratio", "A100", "V100", "A100", "V100", "ratio"
    row("ResNet-50, images/s", "resnet50", "", 1200, 800, 4200, 2800)
    row("Transformer, sentences/s", "transformer-big-wmt", "", 950, 600, 3500, 2200)
}
