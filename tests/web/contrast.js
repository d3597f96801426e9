// Which texts of a page differ too little in brightness from what is behind them.
function brightness(colour) {
  const parts = colour.map((each) => each / 255);
  const linear = parts.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function numbers(text) {
  return (text.match(/[\d.]+/g) ?? []).map(Number);
}

function behind(element) {
  for (let each = element; each; each = each.parentElement) {
    const colour = numbers(getComputedStyle(each).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
  }
  return [255, 255, 255];
}

function tooFaint(least) {
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const paper = behind(element);
    let ink = numbers(getComputedStyle(element).color).slice(0, 3);
    const opacity = Number(getComputedStyle(element).opacity);
    ink = ink.map((v, i) => v * opacity + paper[i] * (1 - opacity));
    const [high, low] = [brightness(ink), brightness(paper)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < least) found.push(`${element.className || element.tagName}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)];
}
