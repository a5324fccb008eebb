-- What `cargo sing bench wasm` has SQLite do, in memory. Prints one line.
CREATE TABLE articles(id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind INTEGER NOT NULL, price REAL NOT NULL);
BEGIN;
WITH RECURSIVE numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 60000)
INSERT INTO articles SELECT n, 'article ' || ((n * 7919) % 60000), n % 97, (n * 31 % 1000) / 8.0 FROM numbers;
COMMIT;
CREATE INDEX articles_by_kind ON articles(kind, price);
CREATE INDEX articles_by_name ON articles(name);
CREATE TABLE orders(id INTEGER PRIMARY KEY, article INTEGER NOT NULL, count INTEGER NOT NULL);
INSERT INTO orders SELECT id, (id * 104729) % 60000 + 1, id % 7 + 1 FROM articles;
UPDATE articles SET price = price * 1.25 WHERE kind IN (3, 5, 8, 13, 21, 34, 55, 89);
DELETE FROM orders WHERE article % 11 = 4;
CREATE TABLE totals AS
    SELECT articles.kind AS kind, sum(orders.count * articles.price) AS total, count(*) AS orders
    FROM orders JOIN articles ON articles.id = orders.article GROUP BY articles.kind ORDER BY total DESC;
SELECT 'result',
    (SELECT cast(sum(total) AS INTEGER) FROM totals),
    (SELECT count(*) FROM articles WHERE name LIKE '%77%' AND price > 20),
    (SELECT max(length(name) + kind) FROM articles WHERE name BETWEEN 'article 3' AND 'article 4'),
    (SELECT count(DISTINCT substr(name, 9, 3)) FROM articles),
    (SELECT sum(orders) FROM totals);
