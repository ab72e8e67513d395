"""What is wrong with a .prompty file, where, and how to mend it.

for finding in check_file("similarity.prompty"):
    print(finding)                       # file:line:column: severity code message
"""

from assay.prompty.check.checker import check_file, check_text
from assay.prompty.check.codes import CODES, Code
from assay.prompty.check.finding import Finding
from assay.prompty.check.fix import fix_text

__all__ = ["CODES", "Code", "Finding", "check_file", "check_text", "fix_text"]
