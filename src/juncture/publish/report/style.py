"""The style sheet of a page: one accent, system fonts, light and dark, phone and print."""

from __future__ import annotations

from juncture.publish.report.palette import DARK, LIGHT, css_variables

_BASE = """
*,*::before,*::after{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:1.5rem}
body{margin:0;background:var(--paper);color:var(--ink);
 font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
 overflow-wrap:anywhere}
h1,h2{font-family:"Iowan Old Style","Palatino Linotype",Palatino,"URW Palladio L",P052,
 "Book Antiqua",Georgia,serif;font-weight:600;line-height:1.2;letter-spacing:-.01em;
 text-wrap:balance}
h1{font-size:clamp(2rem,1.4rem + 2.6vw,3.1rem);margin:.2rem 0 1rem}
h2{font-size:clamp(1.5rem,1.3rem + .8vw,1.9rem);margin:0 0 1rem}
h3{font-size:1rem;line-height:1.35;margin:2rem 0 .5rem}
p,ul,dl{margin:0 0 1rem}
p,.limits{max-width:44rem}
a{color:var(--accent);text-underline-offset:.18em;text-decoration-thickness:.06em}
:focus-visible{outline:.18rem solid var(--accent);outline-offset:.18rem;border-radius:.2rem}
code,pre{font:.875em/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.skip{position:absolute;left:-99rem;top:0;padding:.6rem 1rem;background:var(--card);z-index:9}
.skip:focus{left:.5rem;top:.5rem}
"""
_LAYOUT = """
.page{max-width:82rem;margin:0 auto;padding:1.5rem clamp(1.1rem,4vw,3rem) 5rem}
header{padding:clamp(1rem,5vw,3.5rem) 0 1rem}
.mark{display:flex;align-items:center;gap:.6rem;font-size:.875rem;color:var(--quiet);margin:0}
.mark svg{width:1.5rem;height:1.5rem;flex:none}
.intro{font-size:1.1rem;line-height:1.6;color:var(--ink);margin-bottom:2rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:0;margin:0;
 border-block:1px solid var(--line)}
.note+.figures{margin-top:1.4rem}
.figures div{padding:.9rem 1rem .9rem 0;display:flex;flex-direction:column-reverse;
 justify-content:flex-end}
.figures span{white-space:nowrap}
.figures dt{font-size:.8125rem;color:var(--quiet);line-height:1.35}
.figures dd{margin:0;font-size:clamp(1.2rem,1rem + 1vw,1.5rem);line-height:1.3;font-weight:600;
 font-variant-numeric:tabular-nums;letter-spacing:-.01em}
nav ol{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;
 font-size:.9rem}
nav a{display:inline-block;padding:.3rem 0;color:var(--quiet);text-decoration:none}
nav a:hover{color:var(--accent);text-decoration:underline}
nav{margin:1.2rem 0 0}
main{min-width:0}
section{padding:2.6rem 0 1.2rem;border-top:1px solid var(--line);margin-top:2rem}
section:first-of-type{border-top:0;margin-top:0}
footer{border-top:1px solid var(--line);margin-top:2.5rem;padding-top:1rem;font-size:.85rem;
 color:var(--quiet)}
@media(min-width:70rem){
 .columns{display:grid;grid-template-columns:12.5rem minmax(0,1fr);gap:3.5rem}
 nav{position:sticky;top:2.2rem;align-self:start;margin:2.6rem 0 0;padding-left:1rem;
  border-left:2px solid var(--line)}
 nav ol{display:block}
}
"""
_PARTS = """
.lead{font-size:1.1rem}
.note{background:var(--wash);border-left:.2rem solid var(--accent);padding:.7rem 1rem;
 border-radius:0 .4rem .4rem 0;max-width:44rem}
.note p{margin:0}
.note.flag{background:var(--flag-wash);border-color:var(--flag)}
.flagged{color:var(--flag)}
.hint{font-size:.8125rem;line-height:1.45;color:var(--quiet);margin:.5rem 0 0}
.under{display:block;margin:0}
.symbols{display:grid;gap:.5rem;margin:0 0 1rem}
.symbols div{display:flex;flex-wrap:wrap;gap:.1rem 1rem;align-items:baseline}
.symbols dt{font-weight:600;font-size:1.15rem;min-width:11.5rem;font-variant-numeric:tabular-nums}
.symbols dd{margin:0;color:var(--quiet)}
.formula{display:block;background:var(--wash);padding:.6rem .9rem;border-radius:.4rem;
 margin-bottom:.5rem;white-space:pre-wrap;line-height:1.9}
sub,sup{line-height:0;font-size:.8em}
.limits{padding-left:1.1rem}
.limits li{margin-bottom:.6rem}
.limits li::marker{color:var(--accent)}
.scroll{--ground:var(--paper);overflow-x:auto;margin:1rem 0;overflow-wrap:normal;
 background:linear-gradient(90deg,var(--ground) 40%,transparent) 0 0/2rem 100% no-repeat local,
 linear-gradient(270deg,var(--ground) 40%,transparent) 100% 0/2rem 100% no-repeat local,
 linear-gradient(90deg,var(--line),transparent) 0 0/.8rem 100% no-repeat,
 linear-gradient(270deg,var(--line),transparent) 100% 0/.8rem 100% no-repeat}
.card .scroll{--ground:var(--card)}
table{border-collapse:collapse;font-size:.875rem;line-height:1.4;min-width:100%;
 font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--quiet);font-size:.8125rem;padding:0 0 .4rem}
th,td{text-align:left;vertical-align:top;padding:.42rem 1rem .42rem 0;max-width:24rem;
 overflow-wrap:break-word;font-weight:400}
.t{min-width:10rem}
tr>:last-child{padding-right:.3rem}
thead th{font-size:.8125rem;color:var(--quiet);border-bottom:1px solid var(--ink);
 vertical-align:bottom}
tbody tr+tr>*{border-top:1px solid var(--line)}
.n{text-align:right;white-space:nowrap}
details{margin:1rem 0}
summary{cursor:pointer;color:var(--accent);font-size:.9rem;padding:.25rem 0;width:fit-content}
details[open]>summary{margin-bottom:.2rem}
pre{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.9rem 1.1rem;
 overflow-x:auto;margin:0 0 1.2rem;overflow-wrap:normal}
.cards{display:grid;align-items:start;grid-template-columns:repeat(auto-fill,minmax(min(100%,17.5rem),1fr));
 gap:1.1rem;margin-top:1.4rem}
.cards.pairs{grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr))}
.card{margin:0;background:var(--card);border:1px solid var(--line);border-radius:.7rem;
 padding:1rem 1.1rem .7rem;min-width:0}
.card figcaption{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;
 gap:0 .8rem;margin-bottom:.7rem}
.card h3,.card figcaption .hint{margin:0}
.card .and{color:var(--quiet);font-weight:400}
.card p.hint:not(:last-child){margin:.2rem 0 .7rem}
.card details{margin:.4rem 0 0}
.card .scroll{max-height:18rem;overflow:auto;margin:.4rem 0}
.card td,.card th{padding-block:.25rem}
"""
_DRAWINGS = """
svg{display:block;max-width:100%;height:auto}
.card svg{width:100%;margin-bottom:.6rem}
svg text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:var(--ink);
 font-variant-numeric:tabular-nums}
svg .quiet{fill:var(--quiet)}
svg .small{font-size:10px}
svg .strong{font-weight:600;font-size:11.5px}
svg .end{text-anchor:end}
svg .middle{text-anchor:middle}
.bar,.cell{fill:var(--accent)}
.bar{fill-opacity:.88}
.true{fill:var(--quiet);fill-opacity:.55}
.point{fill:var(--accent);fill-opacity:.6}
.point:hover{fill-opacity:1;stroke:var(--ink)}
.legend{display:flex;flex-wrap:wrap;align-items:center;gap:.2rem .5rem;font-size:.875rem;
 color:var(--quiet)}
.free .bar,.pale>.bar{fill-opacity:.3}
.apart>.bar{fill:var(--quiet);fill-opacity:.6}
.apart.pale>.bar{fill-opacity:.3}
.track{fill:var(--line);fill-opacity:.5}
tr.pale>*{color:var(--quiet);font-style:italic}
.full{margin:.2rem 0 0;font-size:.8125rem;line-height:1.45}
.full div{padding:.25rem 0;border-top:1px solid var(--line)}
.full dt{color:var(--quiet)}
.full dd{margin:0}
.hit{fill:transparent}
g:hover>.hit{fill:var(--wash)}
.cell:hover{stroke:var(--ink);stroke-width:1.4}
.frame{fill:none;stroke:var(--quiet);stroke-opacity:.5}
.ground{fill:var(--wash);fill-opacity:.35}
.axis{stroke:var(--quiet);stroke-width:1}
.grid{stroke:var(--line);stroke-width:1}
.tree{margin:1.4rem 0;border:1px solid var(--line);border-radius:.7rem;background:var(--card);
 padding:1.2rem;overflow:auto}
.tree.wide svg{max-width:none;margin:0 auto}
.tree.outline.long{max-height:48rem}
.tree.outline svg{width:100%;max-width:25rem}
.tree.narrow{display:none}
.box{fill:var(--paper);stroke:var(--line);stroke-width:1.2}
.box.root{stroke:var(--accent)}
.tree g:hover>.box{stroke:var(--accent);stroke-width:1.8}
.edge{fill:none;stroke:var(--quiet);stroke-width:1.3;stroke-opacity:.7}
.tree g:hover>.edge{stroke:var(--accent);stroke-opacity:1;stroke-width:2}
.dot{fill:var(--card);stroke:var(--accent);stroke-width:2}
.dot.root{fill:var(--accent)}
@media(max-width:60rem){.tree.wide:has(+.narrow){display:none}.tree.narrow{display:block}}
"""
_PRINT = """
@media(prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
@media print{
 :root{LIGHT}
 nav,.skip{display:none}
 .page{max-width:none;padding:0}
 .columns{display:block}
 body{font-size:10pt;background:#fff}
 section{break-inside:auto;padding:1.2rem 0 .4rem}
 h2,h3{break-after:avoid}
 .card,.tree,tr{break-inside:avoid}
 .scroll,.tree,.card .scroll,.tree.outline.long{overflow:visible;max-height:none}
 pre{white-space:pre-wrap}
 .cards,.cards.pairs{grid-template-columns:1fr 1fr}
 .card details:not(.printed){display:none}
 .tree.wide svg{max-width:100%}
 .printed summary{color:var(--quiet)}
 details::details-content{content-visibility:visible;block-size:auto}
}
"""


def build_style_sheet() -> str:
    """The whole style sheet."""
    colours = (
        f":root{{color-scheme:light dark;{css_variables(LIGHT)}}}\n"
        f"@media(prefers-color-scheme:dark){{:root{{{css_variables(DARK)}}}}}"
    )
    parts = (_BASE, _LAYOUT, _PARTS, _DRAWINGS, _PRINT.replace("LIGHT", css_variables(LIGHT)))
    return colours + "".join(parts)
