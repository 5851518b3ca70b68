"""The median seconds of a training step of resnet50 or gpt-small in PyTorch on GPU 0, as experiments/gpu-*.yaml train them: the same batch, precision,
memory format and optimizer, inputs in place, no data pipeline. Prints one number; exits with 1 and a reason where PyTorch or a GPU is missing.
usage: python3 gpu_check_torch.py resnet50|gpt-small"""
import statistics
import sys

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError:
    sys.exit("python3 has no torch")
if not torch.cuda.is_available():
    sys.exit("PyTorch sees no GPU")


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.short = None
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.short is None else self.short(x)), inplace=True)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        inputs = 64
        for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
            for block in range(blocks):
                layers.append(Bottleneck(inputs, width, 2 if stage > 0 and block == 0 else 1))
                inputs = 4 * width
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))

    def forward(self, x):
        return self.body(x)


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(h, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, h)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GptSmall(nn.Module):
    def __init__(self, vocab=50257, hidden=768, layers=12, heads=12, positions=1024):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def main():
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    if sys.argv[1] == "resnet50":
        model = ResNet50().cuda().to(memory_format=torch.channels_last)
        x = torch.randn(128, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
        labels = torch.randint(1000, (128,), device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9, foreach=True)
        dtype, scaler = torch.float16, torch.amp.GradScaler("cuda")
    else:
        model = GptSmall().cuda()
        x = torch.randint(50257, (8, 1024), device="cuda")
        labels = torch.randint(50257, (8 * 1024,), device="cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, weight_decay=0, fused=True)
        dtype, scaler = torch.bfloat16, torch.amp.GradScaler("cuda", enabled=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=dtype):
            logits = model(x)
            loss = F.cross_entropy(logits.flatten(0, -2).float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    for _ in range(10):
        step()
    times = []
    for _ in range(30):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    print(statistics.median(times))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("resnet50", "gpt-small"):
        sys.exit(__doc__)
    main()
