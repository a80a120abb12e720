// Runs before the page is drawn, so that it never flashes in the wrong colours.
(() => {
  let kept = null;
  try { kept = localStorage.getItem("juncture-theme"); } catch { /* storage may be off */ }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
