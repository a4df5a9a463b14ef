/* Texts whose contrast with what lies behind them is below 4.5; disabled buttons are exempt (WCAG 1.4.3). */
() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) =>
    [r, g, b]
      .map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgba(getComputedStyle(document.body).backgroundColor);
  };
  const faint = [];
  let seen = 0;
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || element.closest('script, style, .unseen, [aria-disabled=true], dialog:not([open])'))
      continue;
    seen += 1;
    const drawn = element.namespaceURI.endsWith('svg');
    const style = getComputedStyle(element);
    const front = light(rgba(drawn ? style.fill : style.color));
    const flag = element.matches('.cursor-label') ? element.parentElement.querySelector('.cursor-flag') : null;
    const back = light(flag ? rgba(getComputedStyle(flag).fill) : behind(element));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5)
      faint.push(`${element.className.baseVal ?? element.className}: ${element.textContent} ${ratio.toFixed(2)}`);
  }
  return { faint, seen };
};
