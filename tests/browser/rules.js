// What axe-core does not look at: reflow (WCAG 2.2, 1.4.10), focus that is seen (2.4.7) and not covered (2.4.11).
// Comes to a list of what is broken.
(async () => {
  const NARROW = 400;
  const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  // Rows and columns, and pictures, may be wider than the window, in a box of their own.
  const MAY_SCROLL = "table, [role='row'], img, video";
  const found = [];
  const told = (each) => each.outerHTML.slice(0, 160);
  const isShown = (each) => each.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  const page = document.documentElement;
  const isWide = page.scrollWidth > innerWidth;
  if (isWide) {
    // What a box of its own scrolls does not widen the page.
    const isFree = (each) => each === null || (getComputedStyle(each).overflowX === "visible" && isFree(each.parentElement));
    const beyond = [...document.body.querySelectorAll("*")].filter(
      (each) => each.getBoundingClientRect().right > innerWidth + 1 && isFree(each.parentElement),
    );
    found.push(`wider than its window: ${beyond.length ? told(beyond.at(-1)) : ""}`);
  }
  if (innerWidth <= NARROW) {
    for (const each of document.body.querySelectorAll(":not(input, textarea, select)")) {
      const isScrolled = ["auto", "scroll"].includes(getComputedStyle(each).overflowX) && each.scrollWidth > each.clientWidth + 1;
      if (isScrolled && isShown(each) && !each.querySelector(MAY_SCROLL)) {
        found.push(`scrolls both ways: ${told(each)}`);
      }
    }
  }

  const PARTS = [0.1, 0.5, 0.9];
  // Of what is larger than the window, the part inside the window has to be seen.
  const within = (from, length, limit) => [Math.max(from, 0), Math.min(from + length, limit)];
  const isSeen = (each) =>
    [...each.getClientRects()].some((box) => {
      const [left, right] = within(box.left, box.width, innerWidth);
      const [top, bottom] = within(box.top, box.height, innerHeight);
      return PARTS.some((x) =>
        PARTS.some((y) => {
          const shown = document.elementFromPoint(left + (right - left) * x, top + (bottom - top) * y);
          return shown !== null && (each.contains(shown) || shown.closest("label")?.control === each);
        }),
      );
    });
  const hasOutline = (each) =>
    [[each], [each, "::after"], ...[...each.children].map((child) => [child])].some(([of, part]) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(of, part);
      return outlineStyle !== "none" && outlineWidth !== "0px";
    });
  const before = document.activeElement;
  // What has the focus already is not scrolled to again.
  before?.blur();
  // What was open for it closes with the next picture.
  await new Promise((drawn) => setTimeout(drawn, 50));
  for (const each of document.querySelectorAll(FOCUSABLE)) {
    // What the keyboard does not reach never has its focus.
    if (each.disabled || each.tabIndex < 0 || !isShown(each)) {
      continue;
    }
    each.focus();
    // What is behind a dialog takes no focus.
    if (document.activeElement !== each) {
      continue;
    }
    if (!isSeen(each)) {
      found.push(`covered while it has the focus: ${told(each)}`);
    }
    if (!hasOutline(each)) {
      found.push(`does not show that it has the focus: ${told(each)}`);
    }
  }
  document.activeElement.blur();
  before.focus({ preventScroll: true });
  scrollTo(0, 0);
  return found;
})()
