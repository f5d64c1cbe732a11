-- Lists are narrowed to a channel, and to what anybody may download, as well: channel:stable, access:free.

INSERT INTO catalog_facet (facet, title, product_id)
SELECT 'access:' || p.access, e.title, e.product_id
FROM catalog_entry e
JOIN product p ON p.id = e.product_id;

INSERT INTO catalog_facet (facet, title, product_id)
SELECT DISTINCT 'channel:' || r.channel, e.title, e.product_id
FROM catalog_entry e
JOIN release r ON r.product_id = e.product_id
WHERE r.status = 'published';
