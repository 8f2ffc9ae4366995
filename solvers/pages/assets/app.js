// The page's one store: what is asked (values), what came of it (result), and where we look (time).
