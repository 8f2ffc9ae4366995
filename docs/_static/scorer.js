// Ranks pages about a task above lessons, reference and glossary, and the changelog last.
var Scorer = {
  score: ([page, , , , score]) => {
    if (page === "changelog") return score - 100;
    if (page.startsWith("_generated/api/")) return score - 15;
    if (/^(coming-from|lessons)/.test(page)) return score - 10;
    if (page === "glossary" || page.startsWith("internals/")) return score - 20;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
